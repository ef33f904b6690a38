// The arithmetic of training, in AssemblyScript with 128-bit SIMD. Compiled by compile.ts.
//
// Every pointer is a byte offset into the imported memory. Matrices are 32-bit floats, row by row.
// Widths are multiples of 4, those of matrix products multiples of 8; token counts are arbitrary.
// Nothing is random and no order of addition depends on timing: the same input gives the same bits.

// Depth of a block of a matrix product: a panel of B and a strip of A stay in the first-level cache.
const DEPTH_BLOCK: i32 = 256;

// @ts-ignore: decorator
@inline function lanesSum(v: v128): f32 {
  return f32x4.extract_lane(v, 0) + f32x4.extract_lane(v, 1) + (f32x4.extract_lane(v, 2) + f32x4.extract_lane(v, 3));
}

// @ts-ignore: decorator
@inline function multiplyAdd(sum: v128, a: v128, b: v128): v128 {
  return f32x4.add(sum, f32x4.mul(a, b));
}

// e^x in four lanes, relative error about 2e-7 (the polynomial of Cephes' expf); arguments clamped to ±87.
// @ts-ignore: decorator
@inline function exponential(argument: v128): v128 {
  const x = f32x4.max(f32x4.min(argument, f32x4.splat(87)), f32x4.splat(-87));
  const n = f32x4.nearest(f32x4.mul(x, f32x4.splat(1.44269504088896341)));
  let f = f32x4.sub(x, f32x4.mul(n, f32x4.splat(0.693359375)));
  f = f32x4.sub(f, f32x4.mul(n, f32x4.splat(-2.12194440e-4)));
  let p = f32x4.splat(1.9875691500e-4);
  p = multiplyAdd(f32x4.splat(1.3981999507e-3), p, f);
  p = multiplyAdd(f32x4.splat(8.3334519073e-3), p, f);
  p = multiplyAdd(f32x4.splat(4.1665795894e-2), p, f);
  p = multiplyAdd(f32x4.splat(1.6666665459e-1), p, f);
  p = multiplyAdd(f32x4.splat(5.0000001201e-1), p, f);
  p = multiplyAdd(f32x4.add(f, f32x4.splat(1)), p, f32x4.mul(f, f));
  const power = i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(n), i32x4.splat(127)), 23);
  return f32x4.mul(p, power);
}

// C[M,N] (+)= A · B. Element (m,k) of A lies at a + m·rowStride + k·depthStride (bytes), so that one routine serves a matrix
// and its transpose; B is [K,N]. Four rows by eight columns are held in registers.
export function matrixProduct(c: usize, a: usize, b: usize, M: i32, N: i32, K: i32, rowStride: i32, depthStride: i32, accumulate: i32): void {
  const stepB = <usize>N << 2;
  for (let start = 0; start < K; start += DEPTH_BLOCK) {
    const depth = min(DEPTH_BLOCK, K - start);
    const add = accumulate != 0 || start > 0;
    for (let n = 0; n < N; n += 8) {
      const panel = b + ((<usize>start * N + n) << 2);
      for (let m = 0; m < M; m += 4) {
        const rows = M - m;
        // Rows past the end repeat the first one and are not stored.
        const a0 = a + <usize>m * rowStride + <usize>start * depthStride;
        const a1 = rows > 1 ? a0 + rowStride : a0;
        const a2 = rows > 2 ? a1 + rowStride : a0;
        const a3 = rows > 3 ? a2 + rowStride : a0;
        let s00 = f32x4.splat(0), s01 = s00, s10 = s00, s11 = s00, s20 = s00, s21 = s00, s30 = s00, s31 = s00;
        let at: usize = 0, bp = panel;
        for (let k = 0; k < depth; k++) {
          const w0 = v128.load(bp), w1 = v128.load(bp, 16);
          let x = v128.load32_splat(a0 + at);
          s00 = multiplyAdd(s00, x, w0);
          s01 = multiplyAdd(s01, x, w1);
          x = v128.load32_splat(a1 + at);
          s10 = multiplyAdd(s10, x, w0);
          s11 = multiplyAdd(s11, x, w1);
          x = v128.load32_splat(a2 + at);
          s20 = multiplyAdd(s20, x, w0);
          s21 = multiplyAdd(s21, x, w1);
          x = v128.load32_splat(a3 + at);
          s30 = multiplyAdd(s30, x, w0);
          s31 = multiplyAdd(s31, x, w1);
          at += depthStride;
          bp += stepB;
        }
        let cp = c + ((<usize>m * N + n) << 2);
        storeRow(cp, s00, s01, add);
        if (rows > 1) storeRow(cp += stepB, s10, s11, add);
        if (rows > 2) storeRow(cp += stepB, s20, s21, add);
        if (rows > 3) storeRow(cp += stepB, s30, s31, add);
      }
    }
  }
}

// @ts-ignore: decorator
@inline function storeRow(at: usize, left: v128, right: v128, add: bool): void {
  v128.store(at, add ? f32x4.add(v128.load(at), left) : left);
  v128.store(at, add ? f32x4.add(v128.load(at, 16), right) : right, 16);
}

// out[columns,rows] = in[rows,columns] transposed.
export function transpose(out: usize, input: usize, rows: i32, columns: i32): void {
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) store<f32>(out + ((<usize>c * rows + r) << 2), load<f32>(input + ((<usize>r * columns + c) << 2)));
  }
}

// out[m] = table[ids[m]]; vectors of `width`.
export function gatherRows(out: usize, table: usize, ids: usize, M: i32, width: i32): void {
  const bytes = <usize>width << 2;
  for (let m = 0; m < M; m++) memory.copy(out + m * bytes, table + <usize>load<i32>(ids + (<usize>m << 2)) * bytes, bytes);
}

// table[ids[m]] += rows[m]
export function scatterAddRows(table: usize, rows: usize, ids: usize, M: i32, width: i32): void {
  const bytes = <usize>width << 2;
  for (let m = 0; m < M; m++) {
    const target = table + <usize>load<i32>(ids + (<usize>m << 2)) * bytes, source = rows + m * bytes;
    for (let i: usize = 0; i < bytes; i += 16) v128.store(target + i, f32x4.add(v128.load(target + i), v128.load(source + i)));
  }
}

// y = x · scale[m] · w with scale = 1 / √(mean x² + epsilon), kept for the way back (Zhang & Sennrich 2019).
export function rmsNorm(y: usize, x: usize, w: usize, scales: usize, M: i32, width: i32, epsilon: f32): void {
  const bytes = <usize>width << 2;
  for (let m = 0; m < M; m++, x += bytes, y += bytes) {
    let squares = f32x4.splat(0);
    for (let i: usize = 0; i < bytes; i += 16) {
      const v = v128.load(x + i);
      squares = multiplyAdd(squares, v, v);
    }
    const scale: f32 = 1 / sqrt<f32>(lanesSum(squares) / <f32>width + epsilon);
    store<f32>(scales + (<usize>m << 2), scale);
    const s = f32x4.splat(scale);
    for (let i: usize = 0; i < bytes; i += 16) v128.store(y + i, f32x4.mul(f32x4.mul(v128.load(x + i), s), v128.load(w + i)));
  }
}

// dx += w·dy·s − x·s³·mean(w·dy·x); dw += dy·x·s
export function rmsNormBackward(dx: usize, dw: usize, dy: usize, x: usize, w: usize, scales: usize, M: i32, width: i32): void {
  const bytes = <usize>width << 2;
  for (let m = 0; m < M; m++, x += bytes, dy += bytes, dx += bytes) {
    const scale = load<f32>(scales + (<usize>m << 2)), s = f32x4.splat(scale);
    let product = f32x4.splat(0);
    for (let i: usize = 0; i < bytes; i += 16) {
      const g = v128.load(dy + i), v = v128.load(x + i);
      product = multiplyAdd(product, f32x4.mul(g, v128.load(w + i)), v);
      v128.store(dw + i, multiplyAdd(v128.load(dw + i), f32x4.mul(g, v), s));
    }
    const pull = f32x4.splat((lanesSum(product) * scale * scale * scale) / <f32>width);
    for (let i: usize = 0; i < bytes; i += 16) {
      const direct = multiplyAdd(v128.load(dx + i), f32x4.mul(v128.load(dy + i), v128.load(w + i)), s);
      v128.store(dx + i, f32x4.sub(direct, f32x4.mul(v128.load(x + i), pull)));
    }
  }
}

// Rotary positions on neighbouring pairs of each head (Su et al. 2021, the layout of llama.cpp). `cosines` and `sines` are
// [context, headWidth/2]; sign −1 turns back.
export function rotate(x: usize, positions: usize, cosines: usize, sines: usize, M: i32, heads: i32, headWidth: i32, sign: f32): void {
  const half = headWidth >> 1;
  for (let m = 0; m < M; m++) {
    const row = (<usize>load<i32>(positions + (<usize>m << 2)) * half) << 2;
    for (let h = 0; h < heads; h++) {
      for (let i = 0; i < half; i++, x += 8) {
        const c = load<f32>(cosines + row + (<usize>i << 2)), s = load<f32>(sines + row + (<usize>i << 2)) * sign;
        const a = load<f32>(x), b = load<f32>(x, 4);
        store<f32>(x, a * c - b * s);
        store<f32>(x, a * s + b * c, 4);
      }
    }
  }
}

// @ts-ignore: decorator
@inline function dot(a: usize, b: usize, bytes: usize): f32 {
  let sum = f32x4.splat(0);
  for (let i: usize = 0; i < bytes; i += 16) sum = multiplyAdd(sum, v128.load(a + i), v128.load(b + i));
  return lanesSum(sum);
}

// Causal attention of one sequence of T tokens, all heads. o, q, k, v are [T, heads·headWidth]; the weights are kept in
// `weights` as [heads, T, stride], stride = T rounded up to a multiple of 4.
export function attention(o: usize, q: usize, k: usize, v: usize, weights: usize, T: i32, heads: i32, headWidth: i32): void {
  const row = <usize>(heads * headWidth) << 2, head = <usize>headWidth << 2;
  const stride = <usize>((T + 3) & ~3) << 2;
  const scale: f32 = 1 / sqrt<f32>(<f32>headWidth);
  for (let h = 0; h < heads; h++) {
    const kh = k + h * head, vh = v + h * head;
    for (let t = 0; t < T; t++, weights += stride) {
      const qt = q + t * row + h * head, ot = o + t * row + h * head;
      let largest: f32 = -f32.MAX_VALUE;
      for (let j = 0; j <= t; j++) {
        const score = dot(qt, kh + j * row, head) * scale;
        store<f32>(weights + (<usize>j << 2), score);
        largest = max(largest, score);
      }
      const shift = f32x4.splat(largest), end = <usize>(t + 1) << 2, padded = (end + 15) & ~15;
      for (let at: usize = 0; at < padded; at += 16) v128.store(weights + at, exponential(f32x4.sub(v128.load(weights + at), shift)));
      for (let at = end; at < padded; at += 4) store<f32>(weights + at, 0);
      let total = f32x4.splat(0);
      for (let at: usize = 0; at < padded; at += 16) total = f32x4.add(total, v128.load(weights + at));
      const inverse = f32x4.splat(1 / lanesSum(total));
      for (let at: usize = 0; at < padded; at += 16) v128.store(weights + at, f32x4.mul(v128.load(weights + at), inverse));
      for (let i: usize = 0; i < head; i += 16) {
        let sum = f32x4.splat(0);
        for (let j = 0; j <= t; j++) sum = multiplyAdd(sum, v128.load32_splat(weights + (<usize>j << 2)), v128.load(vh + j * row + i));
        v128.store(ot + i, sum);
      }
    }
  }
}

// Adds to dq, dk, dv. `scratch` holds T floats.
export function attentionBackward(dq: usize, dk: usize, dv: usize, d_o: usize, q: usize, k: usize, v: usize, weights: usize, scratch: usize, T: i32, heads: i32, headWidth: i32): void {
  const row = <usize>(heads * headWidth) << 2, head = <usize>headWidth << 2;
  const stride = <usize>((T + 3) & ~3) << 2;
  const scale: f32 = 1 / sqrt<f32>(<f32>headWidth);
  for (let h = 0; h < heads; h++) {
    const shift = h * head;
    for (let t = 0; t < T; t++, weights += stride) {
      const here = t * row + shift;
      let mean: f32 = 0;
      for (let j = 0; j <= t; j++) {
        const there = j * row + shift, weight = load<f32>(weights + (<usize>j << 2));
        const gradient = dot(d_o + here, v + there, head);
        store<f32>(scratch + (<usize>j << 2), gradient);
        mean += weight * gradient;
      }
      for (let j = 0; j <= t; j++) {
        const there = j * row + shift, weight = load<f32>(weights + (<usize>j << 2));
        const score = f32x4.splat(weight * (load<f32>(scratch + (<usize>j << 2)) - mean) * scale), w = f32x4.splat(weight);
        for (let i: usize = 0; i < head; i += 16) {
          v128.store(dq + here + i, multiplyAdd(v128.load(dq + here + i), score, v128.load(k + there + i)));
          v128.store(dk + there + i, multiplyAdd(v128.load(dk + there + i), score, v128.load(q + here + i)));
          v128.store(dv + there + i, multiplyAdd(v128.load(dv + there + i), w, v128.load(d_o + here + i)));
        }
      }
    }
  }
}

// out = gate · σ(gate) · up, `count` a multiple of 4 (Shazeer 2020).
export function gatedUnit(out: usize, gate: usize, up: usize, count: i32): void {
  const end = <usize>count << 2, one = f32x4.splat(1);
  for (let i: usize = 0; i < end; i += 16) {
    const g = v128.load(gate + i);
    v128.store(out + i, f32x4.mul(f32x4.div(g, f32x4.add(one, exponential(f32x4.neg(g)))), v128.load(up + i)));
  }
}

export function gatedUnitBackward(dGate: usize, dUp: usize, dOut: usize, gate: usize, up: usize, count: i32): void {
  const end = <usize>count << 2, one = f32x4.splat(1);
  for (let i: usize = 0; i < end; i += 16) {
    const g = v128.load(gate + i), d = v128.load(dOut + i);
    const sigmoid = f32x4.div(one, f32x4.add(one, exponential(f32x4.neg(g))));
    v128.store(dUp + i, f32x4.mul(d, f32x4.mul(g, sigmoid)));
    const slope = f32x4.mul(sigmoid, multiplyAdd(one, g, f32x4.sub(one, sigmoid)));
    v128.store(dGate + i, f32x4.mul(f32x4.mul(d, v128.load(up + i)), slope));
  }
}

// Turns logits [M, V] into the gradient of Σ weight[m] · −log p(target[m]), writes log p(target[m]) and returns that sum.
export function crossEntropy(logits: usize, targets: usize, weights: usize, logprobs: usize, M: i32, V: i32): f64 {
  const bytes = <usize>V << 2;
  let loss: f64 = 0;
  for (let m = 0; m < M; m++, logits += bytes) {
    const target = logits + (<usize>load<i32>(targets + (<usize>m << 2)) << 2), weight = load<f32>(weights + (<usize>m << 2));
    let most = v128.load(logits);
    for (let i: usize = 16; i < bytes; i += 16) most = f32x4.max(most, v128.load(logits + i));
    const largest = max(max(f32x4.extract_lane(most, 0), f32x4.extract_lane(most, 1)), max(f32x4.extract_lane(most, 2), f32x4.extract_lane(most, 3)));
    const chosen = load<f32>(target) - largest, shift = f32x4.splat(largest);
    let total = f32x4.splat(0);
    for (let i: usize = 0; i < bytes; i += 16) {
      const e = exponential(f32x4.sub(v128.load(logits + i), shift));
      v128.store(logits + i, e);
      total = f32x4.add(total, e);
    }
    const sum = lanesSum(total), logprob = <f64>chosen - Math.log(<f64>sum);
    store<f32>(logprobs + (<usize>m << 2), <f32>logprob);
    loss -= <f64>weight * logprob;
    const factor = f32x4.splat(weight / sum);
    for (let i: usize = 0; i < bytes; i += 16) v128.store(logits + i, f32x4.mul(v128.load(logits + i), factor));
    store<f32>(target, load<f32>(target) - weight);
  }
  return loss;
}

// Σ x², in 64 bits.
export function sumOfSquares(x: usize, count: i32): f64 {
  let sum: f64 = 0;
  for (const end = x + (<usize>count << 2); x < end; x += 4) sum += <f64>load<f32>(x) * <f64>load<f32>(x);
  return sum;
}

// One update of Adam (Kingma & Ba 2015) on `count` parameters, a multiple of 4; gradients are multiplied by `shrink` first
// and set to 0 after. `stepSize` and `epsilon` already hold the corrections for the start.
export function adamUpdate(p: usize, g: usize, m: usize, v: usize, count: i32, shrink: f32, stepSize: f32, beta1: f32, beta2: f32, epsilon: f32): void {
  const end = <usize>count << 2, zero = f32x4.splat(0);
  const b1 = f32x4.splat(beta1), r1 = f32x4.splat(1 - beta1), b2 = f32x4.splat(beta2), r2 = f32x4.splat(1 - beta2);
  for (let i: usize = 0; i < end; i += 16) {
    const gradient = f32x4.mul(v128.load(g + i), f32x4.splat(shrink));
    const first = multiplyAdd(f32x4.mul(v128.load(m + i), b1), r1, gradient);
    const second = multiplyAdd(f32x4.mul(v128.load(v + i), b2), r2, f32x4.mul(gradient, gradient));
    v128.store(m + i, first);
    v128.store(v + i, second);
    v128.store(g + i, zero);
    const step = f32x4.div(f32x4.mul(first, f32x4.splat(stepSize)), f32x4.add(f32x4.sqrt(second), f32x4.splat(epsilon)));
    v128.store(p + i, f32x4.sub(v128.load(p + i), step));
  }
}
