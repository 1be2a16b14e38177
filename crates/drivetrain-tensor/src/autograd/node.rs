//! The tape's nodes: what was run, on what, and what was kept of it for backward.

use crate::Tensor;
use crate::rules::Saves;
use crate::run::Few;
use drivetrain_core::{Device, Error, Meta, Op, Result, ViewOp};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where a tensor's gradient goes.
#[derive(Clone)]
pub(crate) enum Edge {
    /// Nowhere.
    None,
    /// Into a leaf's `grad`.
    Leaf(Arc<Leaf>),
    /// To output number `1` of a recorded op.
    Node(Arc<Node>, usize),
}

type Hook = Box<dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync>;

/// A leaf: collects a gradient.
pub(crate) struct Leaf {
    grad: Mutex<Option<Tensor>>,
    hooks: Mutex<Vec<Arc<Hook>>>,
}

impl Leaf {
    pub(crate) fn new() -> Leaf {
        Leaf {
            grad: Mutex::new(None),
            hooks: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn grad(&self) -> Option<Tensor> {
        lock(&self.grad).clone()
    }

    pub(crate) fn set_grad(&self, grad: Option<Tensor>) {
        *lock(&self.grad) = grad;
    }

    pub(crate) fn add_hook(&self, hook: Hook) {
        lock(&self.hooks).push(Arc::new(hook));
    }

    /// What the hooks make of a complete gradient.
    pub(crate) fn run_hooks(&self, mut grad: Tensor) -> Result<Tensor> {
        // The list is copied out first: a hook may register another.
        let hooks = lock(&self.hooks).clone();
        for hook in hooks {
            grad = hook(&grad)?;
        }
        Ok(grad)
    }

    /// Adds to the gradient collected so far. The sum is a new value: whoever holds the old one keeps it.
    pub(crate) fn accumulate(&self, grad: Tensor) -> Result<()> {
        let mut slot = lock(&self.grad);
        *slot = Some(match slot.take() {
            None => grad,
            Some(old) => old.add(&grad)?,
        });
        Ok(())
    }
}

/// What was recorded.
#[derive(Clone, Debug)]
pub(crate) enum Rule {
    /// An op; a scatter has its destination as the first input.
    Op(Op),
    /// A view.
    View(ViewOp),
    /// A copy from this device to another.
    Transfer(Device),
    /// The second input written into a window of the first.
    Write(Vec<ViewOp>),
}

impl Rule {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Rule::Op(op) => op.name(),
            Rule::View(ViewOp::Reshape(_)) => "reshape",
            Rule::View(ViewOp::Permute { .. }) => "permute",
            Rule::View(ViewOp::Expand(_)) => "expand",
            Rule::View(ViewOp::Slice { .. }) => "slice",
            Rule::View(ViewOp::Unfold { .. }) => "unfold",
            Rule::View(ViewOp::Diagonal { .. }) => "diagonal",
            Rule::Transfer(_) => "to",
            Rule::Write(_) => "slice_assign",
        }
    }
}

/// Values kept for backward, by position; outputs are kept outside the graph (they own the node).
#[derive(Default)]
struct Saved {
    inputs: Few<Option<Tensor>>,
    outputs: Few<Option<Tensor>>,
}

impl Saved {
    /// Those that the masks name.
    fn of(inputs: &[&Tensor], outputs: &[Tensor], saves: Saves) -> Saved {
        // Positions past the mask's bits are never kept.
        let keep = |mask: u32, i: usize| u32::checked_shr(mask, i as u32).unwrap_or(0) & 1 == 1;
        let input = |(i, t): (usize, &&Tensor)| keep(saves.inputs, i).then(|| (*t).clone());
        let output = |(i, t): (usize, &Tensor)| keep(saves.outputs, i).then(|| t.clone());
        let mut saved = Saved::default();
        if saves.inputs != 0 {
            saved.inputs = inputs.iter().enumerate().map(input).collect();
        }
        if saves.outputs != 0 {
            saved.outputs = outputs.iter().enumerate().map(output).collect();
        }
        saved
    }
}

/// One recorded op.
pub(crate) struct Node {
    /// Larger than that of every node its inputs came from.
    pub(crate) sequence: u64,
    pub(crate) rule: Rule,
    pub(crate) edges: Few<Edge>,
    pub(crate) input_metas: SmallVec<[Meta; 2]>,
    pub(crate) output_metas: SmallVec<[Meta; 1]>,
    pub(crate) device: Device,
    saved: Mutex<Option<Saved>>,
    saves_something: bool,
}

static SEQUENCE: AtomicU64 = AtomicU64::new(0);

impl Node {
    pub(crate) fn new(rule: Rule, inputs: &[&Tensor], outputs: &[Tensor], saves: Saves) -> Node {
        let saved = Saved::of(inputs, outputs, saves);
        let some = |list: &[Option<Tensor>]| list.iter().any(Option::is_some);
        Node {
            sequence: SEQUENCE.fetch_add(1, Ordering::Relaxed),
            rule,
            edges: inputs.iter().map(|t| t.0.edge.clone()).collect(),
            input_metas: inputs.iter().map(|t| t.meta()).collect(),
            output_metas: outputs.iter().map(Tensor::meta).collect(),
            device: inputs[0].device().clone(),
            saves_something: some(&saved.inputs) || some(&saved.outputs),
            saved: Mutex::new(Some(saved)),
        }
    }

    /// What backward works with; the kept values are let go unless `retain`.
    pub(crate) fn context(self: &Arc<Self>, retain: bool, create_graph: bool) -> Result<Context> {
        let mut slot = lock(&self.saved);
        let freed = || {
            Error::state(
                "backward",
                format!(
                    "the values kept by {} were freed by an earlier backward",
                    self.rule.name()
                ),
            )
            .help("pass retain_graph, or compute the loss again")
        };
        let clone = |saved: &Saved| Saved {
            inputs: saved.inputs.clone(),
            outputs: saved.outputs.clone(),
        };
        let saved = match slot.as_ref() {
            None if self.saves_something => return Err(freed()),
            None => Saved::default(),
            Some(saved) if retain => clone(saved),
            Some(_) => slot.take().unwrap_or_default(),
        };
        Ok(Context {
            node: self.clone(),
            saved,
            create_graph,
        })
    }
}

/// One node's backward: its kept values and which gradients are wanted.
pub(crate) struct Context {
    node: Arc<Node>,
    saved: Saved,
    create_graph: bool,
}

impl Context {
    pub(crate) fn rule(&self) -> &Rule {
        &self.node.rule
    }

    pub(crate) fn device(&self) -> &Device {
        &self.node.device
    }

    /// Whether input `i` wants a gradient.
    pub(crate) fn needs(&self, i: usize) -> bool {
        self.node
            .edges
            .get(i)
            .is_some_and(|edge| !matches!(edge, Edge::None))
    }

    /// How many inputs the op had.
    pub(crate) fn inputs(&self) -> usize {
        self.node.edges.len()
    }

    pub(crate) fn input_meta(&self, i: usize) -> Meta {
        self.node.input_metas[i]
    }

    pub(crate) fn output_meta(&self, i: usize) -> Meta {
        self.node.output_metas[i]
    }

    /// A kept input, in the graph.
    pub(crate) fn input(&self, i: usize) -> Result<Tensor> {
        self.saved
            .inputs
            .get(i)
            .cloned()
            .flatten()
            .ok_or_else(|| self.lost("input", i))
    }

    /// A kept output; in the graph when a graph of the gradient is being made.
    pub(crate) fn output(&self, i: usize) -> Result<Tensor> {
        let value = self.saved.outputs.get(i).cloned().flatten();
        let value = value.ok_or_else(|| self.lost("output", i))?;
        if !self.create_graph || !value.dtype().is_float() {
            return Ok(value);
        }
        Ok(value.with_edge(Edge::Node(self.node.clone(), i)))
    }

    fn lost(&self, what: &str, i: usize) -> Error {
        Error::state(
            "backward",
            format!("{} did not keep {what} {i}", self.node.rule.name()),
        )
    }
}

/// Parts of a dead node, whose drop may kill further nodes.
type Remains = (Few<Edge>, Option<Saved>);

thread_local! {
    static REMAINS: RefCell<Vec<Remains>> = const { RefCell::new(Vec::new()) };
    static DROPPING: Cell<bool> = const { Cell::new(false) };
}

/// A chain of a million nodes must not drop by recursion: each dead node puts its parts on a list, and the
/// outermost drop empties the list.
impl Drop for Node {
    fn drop(&mut self) {
        let saved = self
            .saved
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let remains = (std::mem::take(&mut self.edges), saved);
        let queued = REMAINS.try_with(|list| list.borrow_mut().push(remains));
        if queued.is_err() || DROPPING.replace(true) {
            return;
        }
        while let Some(next) = REMAINS.with(|list| list.borrow_mut().pop()) {
            drop(next);
        }
        DROPPING.set(false);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
