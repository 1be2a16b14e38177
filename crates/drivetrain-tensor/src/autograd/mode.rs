//! Whether ops are recorded, and whether their results are searched for NaN: a setting of the thread.

use std::cell::Cell;

thread_local! {
    static RECORD: Cell<bool> = const { Cell::new(true) };
    static ANOMALY: Cell<bool> = const { Cell::new(false) };
}

/// Puts a thread's setting back when dropped, so that a panic inside leaves it as it was.
struct Restore(&'static std::thread::LocalKey<Cell<bool>>, bool);

impl Drop for Restore {
    fn drop(&mut self) {
        let _ = self.0.try_with(|cell| cell.set(self.1));
    }
}

fn with<R>(
    key: &'static std::thread::LocalKey<Cell<bool>>,
    value: bool,
    body: impl FnOnce() -> R,
) -> R {
    let _restore = Restore(key, key.replace(value));
    body()
}

/// Runs `body` without recording: its results require no gradient. Concerns this thread only.
pub fn no_grad<R>(body: impl FnOnce() -> R) -> R {
    with(&RECORD, false, body)
}

/// Runs `body` with recording on, inside [`no_grad`].
pub fn enable_grad<R>(body: impl FnOnce() -> R) -> R {
    with(&RECORD, true, body)
}

/// Whether this thread records.
pub fn is_grad_enabled() -> bool {
    RECORD.get()
}

/// Runs `body` with every float result searched for NaN and infinity, forward and backward; the first op that
/// made one is named in an error. An infinity that the op was given (a mask of minus infinity) is no fault, a NaN
/// always is. Slow: for finding faults.
pub fn detect_anomaly<R>(body: impl FnOnce() -> R) -> R {
    with(&ANOMALY, true, body)
}

/// Runs `body` without the search: printing must show a NaN, not refuse it.
pub(crate) fn anomaly_off<R>(body: impl FnOnce() -> R) -> R {
    with(&ANOMALY, false, body)
}

pub(crate) fn anomaly_enabled() -> bool {
    ANOMALY.get()
}

pub(crate) fn with_grad_mode<R>(record: bool, body: impl FnOnce() -> R) -> R {
    with(&RECORD, record, body)
}
