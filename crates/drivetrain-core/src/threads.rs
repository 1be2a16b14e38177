//! The one thread pool of the process, `DRIVETRAIN_NUM_THREADS` wide.
//!
//! Kernels cut their work by size, never by the number of threads, so that results do not depend on it.

use std::ops::Range;
use std::sync::OnceLock;

struct Pool {
    threads: usize,
    /// `None` when one thread is all there is: work then runs where it is asked for.
    pool: Option<rayon::ThreadPool>,
}

static POOL: OnceLock<Pool> = OnceLock::new();

/// The environment variable that sets the number of threads.
pub const NUM_THREADS_VARIABLE: &str = "DRIVETRAIN_NUM_THREADS";

/// How many threads work at once: `DRIVETRAIN_NUM_THREADS` where it is a number from 1 to 1024, else the
/// cores available to the process. Read once, at first use.
pub fn num_threads() -> usize {
    pool().threads
}

fn pool() -> &'static Pool {
    POOL.get_or_init(|| {
        let asked = std::env::var(NUM_THREADS_VARIABLE).ok();
        let asked = asked.and_then(|text| text.trim().parse::<usize>().ok());
        let threads = match asked {
            Some(n @ 1..=1024) => n,
            _ => std::thread::available_parallelism().map_or(1, |n| n.get()),
        };
        let pool = (threads > 1).then(|| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .thread_name(|i| format!("drivetrain-{i}"))
                .build()
                .ok()
        });
        Pool {
            threads,
            pool: pool.flatten(),
        }
    })
}

/// Runs `body` over `0..items` in pieces of at most `piece` items, on all threads; returns when all are done.
///
/// The pieces are `0..piece`, `piece..2·piece`, … whatever the number of threads. One piece, or one thread,
/// runs on the caller. A panic in `body` comes out of this call.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// let sum = AtomicUsize::new(0);
/// drivetrain_core::threads::parallel_for(1000, 64, &|range| {
///     sum.fetch_add(range.sum(), Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 499_500);
/// ```
pub fn parallel_for(items: usize, piece: usize, body: &(dyn Fn(Range<usize>) + Sync)) {
    let piece = piece.max(1);
    let pieces = items.div_ceil(piece);
    let range = |i: usize| i * piece..items.min((i + 1) * piece);
    match &pool().pool {
        Some(pool) if pieces > 1 => pool.in_place_scope(|scope| {
            // The caller takes the first piece itself; the rest are halved into tasks of the pool.
            scope.spawn(move |_| split(1..pieces, &|i| body(range(i))));
            body(range(0));
        }),
        _ => (0..pieces).for_each(|i| body(range(i))),
    }
}

fn split(pieces: Range<usize>, run: &(dyn Fn(usize) + Sync)) {
    match pieces.len() {
        0 => {}
        1 => run(pieces.start),
        n => {
            let middle = pieces.start + n / 2;
            rayon::join(
                || split(pieces.start..middle, run),
                || split(middle..pieces.end, run),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn pieces_do_not_depend_on_threads() {
        let seen = Mutex::new(Vec::new());
        parallel_for(10, 4, &|range| seen.lock().unwrap().push(range));
        let mut seen = seen.into_inner().unwrap();
        seen.sort_by_key(|range| range.start);
        assert_eq!(seen, [0..4, 4..8, 8..10]);
        parallel_for(0, 4, &|_| unreachable!("no items"));
    }

    #[test]
    fn nests_and_passes_panics_on() {
        parallel_for(8, 1, &|_| parallel_for(8, 1, &|_| {}));
        let result = std::panic::catch_unwind(|| {
            parallel_for(8, 1, &|range| assert!(range.start != 5, "five"));
        });
        assert!(result.is_err());
    }
}
