'use client';

/** The frame itself broke: no translations and no styles can be relied on here. */
export default function GlobalError({ reset }: { error: Error; reset: () => void }) {
  return (
    <html lang="en">
      <body style={{ fontFamily: 'system-ui, sans-serif', padding: '2rem' }}>
        <h1 style={{ fontSize: '1.1rem' }}>The studio could not draw this page. · 页面无法显示。</h1>
        <p>Nothing that runs is affected. · 正在运行的任务不受影响。</p>
        <button type="button" onClick={reset}>
          Try again · 重试
        </button>
      </body>
    </html>
  );
}
