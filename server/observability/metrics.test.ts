import { describe, expect, it } from 'vitest';
import { createMetrics } from './metrics';

describe('metrics in the Prometheus text format', () => {
  it('writes counters, gauges and cumulative histograms', () => {
    const metrics = createMetrics();
    const requests = metrics.counter('requests_total', 'Requests.');
    requests.add(1, { route: 'a"b', status: '200' });
    requests.add(2, { status: '200', route: 'a"b' });
    metrics.gauge('sockets', 'Open.', () => 3);
    const seconds = metrics.histogram('seconds', 'Time.', [0.1, 1]);
    for (const value of [0.05, 0.1, 0.5, 5]) seconds.observe(value);
    expect(metrics.text().split('\n')).toEqual([
      '# HELP requests_total Requests.',
      '# TYPE requests_total counter',
      'requests_total{route="a\\"b",status="200"} 3',
      '# HELP sockets Open.',
      '# TYPE sockets gauge',
      'sockets 3',
      '# HELP seconds Time.',
      '# TYPE seconds histogram',
      'seconds_bucket{le="0.1"} 2',
      'seconds_bucket{le="1"} 3',
      'seconds_bucket{le="+Inf"} 4',
      'seconds_sum 5.65',
      'seconds_count 4',
      '',
    ]);
  });
});
