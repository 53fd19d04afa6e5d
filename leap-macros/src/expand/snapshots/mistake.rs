::core::compile_error! {
    "unknown argument `qsp`; did you mean `qps`?"
}
::core::compile_error! {
    "`qps` must not be negative, e.g. `qps = 100`"
}
pub const fn function() -> Result<(), Blocked> {
    Ok(())
}
