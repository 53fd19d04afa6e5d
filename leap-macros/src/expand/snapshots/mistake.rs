::core::compile_error! {
    "unknown argument `qsp`; did you mean `qps`? (accepted: `resource`, `permits`, `qps`, `rate`, `precision`, `buckets`, `max_concurrency`, `slow_rt_ms`, `slow_ratio`, `error_ratio`, `error_count`, `min_calls`, `window_ms`, `open_ms`, `probes`, `ignore`, `ok_if`, `err_if`, `fallback`, `mode`, `crate`)"
}
::core::compile_error! {
    "`qps` must not be negative, e.g. `qps = 100`"
}
pub const fn function() -> Result<(), Blocked> {
    Ok(())
}
