::core::compile_error! {
    "unknown argument `qsp`; did you mean `qps`? (accepted: `resource`, `inbound`, `origin`, `entrance`, `permits`, `priority`, `qps`, `rate`, `behavior`, `warm_up_ms`, `cold_factor`, `max_wait_ms`, `burst`, `precision`, `buckets`, `associated`, `max_concurrency`, `queue_ms`, `slow_rt_ms`, `slow_ratio`, `error_ratio`, `error_count`, `min_calls`, `window_ms`, `window_calls`, `open_ms`, `open_max_ms`, `probes`, `recovery`, `hot`, `allow`, `deny`, `ignore`, `ok_if`, `err_if`, `fallback`, `mode`, `crate`)"
}
::core::compile_error! {
    "`qps` must not be negative, e.g. `qps = 100`"
}
pub const fn function() -> Result<(), Blocked> {
    Ok(())
}
