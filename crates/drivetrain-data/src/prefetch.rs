//! Worker threads that make batches ahead of their use and hand them over in order.
//!
//! Workers take plans (which items a batch has) from one shared iterator, so each plan is made exactly once
//! whatever their number, and put the batches into numbered slots. A worker only takes a plan while fewer than
//! `window` batches wait, so memory is bounded and no batch is ever too large to be handed over. Nobody waits
//! for a worker to end: dropping the consumer raises a flag and returns.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use drivetrain_core::{Error, Result};

/// Plans of batches, in order.
pub(crate) type Plans<P> = Box<dyn Iterator<Item = Result<P>> + Send>;

/// Makes batch `number` from its plan; may return early once the flag is raised.
pub(crate) type Make<P, B> = Arc<dyn Fn(usize, P, &AtomicBool) -> Result<B> + Send + Sync>;

/// One epoch of batches: an iterator of `Result`s that ends after the first error.
///
/// Dropping it early stops the workers without waiting for them.
pub struct Batches<B> {
    source: Source<B>,
    /// Batches to come, where that is known.
    left: Option<usize>,
    ended: bool,
}

enum Source<B> {
    Inline(Box<dyn FnMut() -> Option<Result<B>> + Send>),
    Workers(Arc<Shared<B>>),
}

struct Shared<B> {
    state: Mutex<State<B>>,
    /// A slot was filled, or a worker ended.
    filled: Condvar,
    /// A slot was emptied, or the consumer is gone.
    emptied: Condvar,
    stop: AtomicBool,
}

struct State<B> {
    ready: BTreeMap<usize, Result<B>>,
    /// The number the consumer wants next.
    next: usize,
    /// Plans that workers have taken or are about to take.
    taken: usize,
    window: usize,
    workers: usize,
}

impl<B> Shared<B> {
    fn lock(&self) -> MutexGuard<'_, State<B>> {
        // The state is consistent at every unlock, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `function` and turns a panic into an error.
pub(crate) fn guarded<T>(what: &str, function: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(function)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(|s| (*s).to_string())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "(no message)".to_string());
        Err(Error::state(
            "DataLoader",
            format!("{what} panicked: {message}"),
        ))
    })
}

impl<B: Send + 'static> Batches<B> {
    /// Starts an epoch: inline with 0 workers, else on threads with at most `window` finished batches waiting.
    pub(crate) fn start<P: Send + 'static>(
        plans: Plans<P>,
        make: Make<P, B>,
        workers: usize,
        window: usize,
        left: Option<usize>,
    ) -> Batches<B> {
        let workers = workers.min(left.unwrap_or(usize::MAX));
        if workers == 0 {
            let (mut feed, stop) = (Feed::new(plans), AtomicBool::new(false));
            let next = move || {
                let (number, plan) = feed.take()?;
                Some(plan.and_then(|plan| guarded("a batch", || make(number, plan, &stop))))
            };
            return Batches::new(Source::Inline(Box::new(next)), left);
        }
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                ready: BTreeMap::new(),
                next: 0,
                taken: 0,
                window: window.max(1),
                workers: 0,
            }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let feed = Arc::new(Mutex::new(Feed::new(plans)));
        for worker in 0..workers {
            let (shared_there, feed, make) = (shared.clone(), feed.clone(), make.clone());
            shared.lock().workers += 1;
            let thread = std::thread::Builder::new()
                .name(format!("data-worker-{worker}"))
                .spawn(move || work(&shared_there, &feed, &make));
            if let Err(cause) = thread {
                shared.lock().workers -= 1;
                Batches::new(Source::Workers(shared), left).stop();
                let what = format!("cannot start worker {worker} of {workers}");
                return Batches::failed(Error::io("DataLoader", what, cause));
            }
        }
        Batches::new(Source::Workers(shared), left)
    }

    /// An epoch that could not start.
    pub(crate) fn failed(error: Error) -> Batches<B> {
        let mut error = Some(error);
        Batches::new(
            Source::Inline(Box::new(move || error.take().map(Err))),
            None,
        )
    }

    fn new(source: Source<B>, left: Option<usize>) -> Batches<B> {
        Batches {
            source,
            left,
            ended: false,
        }
    }
}

/// Counts a worker out, however it ends.
struct Leave<'a, B>(&'a Shared<B>);

impl<B> Drop for Leave<'_, B> {
    fn drop(&mut self) {
        self.0.lock().workers -= 1;
        self.0.filled.notify_all();
    }
}

/// The plans, numbered; ends at the first error or panic of their source.
struct Feed<P> {
    plans: Plans<P>,
    number: usize,
    ended: bool,
}

impl<P> Feed<P> {
    fn new(plans: Plans<P>) -> Self {
        Feed {
            plans,
            number: 0,
            ended: false,
        }
    }

    fn take(&mut self) -> Option<(usize, Result<P>)> {
        if self.ended {
            return None;
        }
        let plan = guarded("the source", || self.plans.next().transpose()).transpose();
        self.ended = !matches!(plan, Some(Ok(_)));
        let number = self.number;
        self.number += 1;
        plan.map(|plan| (number, plan))
    }
}

fn work<P, B>(shared: &Shared<B>, feed: &Mutex<Feed<P>>, make: &Make<P, B>) {
    let _leave = Leave(shared);
    while reserve(shared) {
        // A source may block in here; other workers wait for it, but the consumer does not hold this lock.
        let taken = feed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((number, plan)) = taken else { return };
        let batch = plan.and_then(|plan| guarded("a batch", || make(number, plan, &shared.stop)));
        let failed = batch.is_err();
        let mut state = shared.lock();
        if !shared.stop.load(Ordering::Relaxed) {
            state.ready.insert(number, batch);
        }
        drop(state);
        shared.filled.notify_all();
        if failed {
            // Earlier batches may still be in work elsewhere; this worker has nothing more to do.
            return;
        }
    }
}

/// Waits for a free slot; false when the epoch was dropped.
fn reserve<B>(shared: &Shared<B>) -> bool {
    let mut state = shared.lock();
    loop {
        if shared.stop.load(Ordering::Relaxed) {
            return false;
        }
        if state.taken - state.next < state.window {
            state.taken += 1;
            return true;
        }
        state = shared
            .emptied
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

/// Waits for the next batch; `None` when all workers ended without it.
fn receive<B>(shared: &Shared<B>) -> Option<Result<B>> {
    let mut state = shared.lock();
    loop {
        let next = state.next;
        if let Some(batch) = state.ready.remove(&next) {
            state.next += 1;
            drop(state);
            shared.emptied.notify_all();
            return Some(batch);
        }
        if state.workers == 0 {
            return None;
        }
        state = shared
            .filled
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

impl<B> Batches<B> {
    fn stop(&mut self) {
        self.ended = true;
        if let Source::Workers(shared) = &self.source {
            // Raised under the lock, so that no worker misses it between its check and its wait.
            let mut state = shared.lock();
            shared.stop.store(true, Ordering::Relaxed);
            let unused = std::mem::take(&mut state.ready);
            drop(state);
            shared.emptied.notify_all();
            drop(unused);
        }
    }
}

impl<B> Iterator for Batches<B> {
    type Item = Result<B>;

    fn next(&mut self) -> Option<Result<B>> {
        if self.ended {
            return None;
        }
        let batch = match &mut self.source {
            Source::Inline(next) => next(),
            Source::Workers(shared) => receive(shared),
        };
        match &batch {
            Some(Ok(_)) => self.left = self.left.map(|left| left.saturating_sub(1)),
            _ => {
                self.left = Some(0);
                self.stop();
            }
        }
        batch
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match (self.ended, self.left) {
            (true, _) => (0, Some(0)),
            // An error may end the epoch after any batch, but an error is an item too.
            (false, Some(left)) => (left.min(1), Some(left)),
            (false, None) => (0, None),
        }
    }
}

impl<B> std::iter::FusedIterator for Batches<B> {}

impl<B> Drop for Batches<B> {
    fn drop(&mut self) {
        self.stop();
    }
}
