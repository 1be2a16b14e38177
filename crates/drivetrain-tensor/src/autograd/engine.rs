//! Backward: walks the graph from the outputs, newest op first, and hands gradients to leaves.

use super::node::{Edge, Leaf, Node};
use super::with_grad_mode;
use crate::{Tensor, rules};
use drivetrain_core::{Error, Result};
use smallvec::SmallVec;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// Hashes an address by itself: addresses differ, and nobody chooses them.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_usize(b.into()));
    }

    fn write_usize(&mut self, address: usize) {
        // The golden ratio spreads the low bits, which alignment leaves 0, over the high ones that maps look at.
        self.0 = (self.0.rotate_left(5) ^ address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 ^= self.0 >> 32;
    }
}

type ByAddress<T> = HashMap<usize, T, BuildHasherDefault<AddressHasher>>;
/// Gradients of a node's outputs.
type Slots = SmallVec<[Option<Tensor>; 2]>;

/// How [`grad_with`] and [`Tensor::backward_with`] work.
#[derive(Clone, Copy, Debug, Default)]
pub struct GradOptions {
    /// Keep the graph for another backward. Implied by `create_graph`.
    pub retain_graph: bool,
    /// Record the gradients' own computation, for gradients of gradients.
    pub create_graph: bool,
}

/// A node in the heap, ordered by age.
struct Pending(Arc<Node>);

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.0.sequence == other.0.sequence
    }
}
impl Eq for Pending {}
impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.sequence.cmp(&other.0.sequence)
    }
}

/// A leaf of this pass: how many contributions are still to come, and their sum so far.
struct LeafState {
    leaf: Arc<Leaf>,
    left: usize,
    sum: Option<Tensor>,
}

/// Where the functional form wants a gradient: a leaf, or an output of a node.
type Key = (usize, usize);

fn key(edge: &Edge) -> Option<Key> {
    match edge {
        Edge::None => None,
        Edge::Leaf(leaf) => Some((Arc::as_ptr(leaf) as usize, usize::MAX)),
        Edge::Node(node, output) => Some((Arc::as_ptr(node) as usize, *output)),
    }
}

struct Pass {
    options: GradOptions,
    heap: BinaryHeap<Pending>,
    grads: ByAddress<Slots>,
    leaves: ByAddress<LeafState>,
    /// `Some` for the functional form: gradients of these, and leaves are left alone.
    wanted: Option<HashMap<Key, Option<Tensor>>>,
}

impl Pass {
    /// Counts how often each leaf is reached, so that its hooks run when its gradient is complete.
    fn count(&mut self, roots: &[&Tensor]) {
        let mut seen = HashSet::<usize, BuildHasherDefault<AddressHasher>>::default();
        let mut stack: Vec<Arc<Node>> = Vec::new();
        let mut visit = |edge: &Edge,
                         stack: &mut Vec<Arc<Node>>,
                         leaves: &mut ByAddress<LeafState>| match edge {
            Edge::None => {}
            Edge::Leaf(leaf) => {
                let state = leaves
                    .entry(Arc::as_ptr(leaf) as usize)
                    .or_insert_with(|| LeafState {
                        leaf: leaf.clone(),
                        left: 0,
                        sum: None,
                    });
                state.left += 1;
            }
            Edge::Node(node, _) => {
                if seen.insert(Arc::as_ptr(node) as usize) {
                    stack.push(node.clone());
                }
            }
        };
        for root in roots {
            visit(&root.0.edge, &mut stack, &mut self.leaves);
        }
        while let Some(node) = stack.pop() {
            for edge in &node.edges {
                visit(edge, &mut stack, &mut self.leaves);
            }
        }
    }

    /// Hands a gradient (or the news that there is none) along an edge.
    fn send(&mut self, edge: &Edge, grad: Option<Tensor>) -> Result<()> {
        match edge {
            Edge::None => Ok(()),
            Edge::Leaf(leaf) => self.send_leaf(leaf, grad),
            Edge::Node(node, output) => {
                let id = Arc::as_ptr(node) as usize;
                let slots = self.grads.entry(id).or_insert_with(|| {
                    self.heap.push(Pending(node.clone()));
                    smallvec::smallvec![None; node.output_metas.len()]
                });
                if let Some(grad) = grad {
                    add_into(&mut slots[*output], grad)?;
                }
                Ok(())
            }
        }
    }

    fn send_leaf(&mut self, leaf: &Arc<Leaf>, grad: Option<Tensor>) -> Result<()> {
        let Some(state) = self.leaves.get_mut(&(Arc::as_ptr(leaf) as usize)) else {
            return Ok(());
        };
        if let Some(grad) = grad {
            add_into(&mut state.sum, grad)?;
        }
        state.left -= 1;
        if state.left > 0 {
            return Ok(());
        }
        let Some(sum) = state.sum.take() else {
            return Ok(());
        };
        let leaf = state.leaf.clone();
        match &mut self.wanted {
            Some(wanted) => {
                if let Some(slot) = wanted.get_mut(&(Arc::as_ptr(&leaf) as usize, usize::MAX)) {
                    *slot = Some(leaf.run_hooks(sum)?);
                }
                Ok(())
            }
            None => leaf.accumulate(leaf.run_hooks(sum)?),
        }
    }

    fn run(&mut self) -> Result<()> {
        while let Some(Pending(node)) = self.heap.pop() {
            let id = Arc::as_ptr(&node) as usize;
            let grads = self.grads.remove(&id).unwrap_or_default();
            if let Some(wanted) = &mut self.wanted {
                for (output, grad) in grads.iter().enumerate() {
                    if let Some(slot) = wanted.get_mut(&(id, output)) {
                        *slot = grad.clone();
                    }
                }
            }
            let inputs = if grads.iter().all(Option::is_none) {
                Vec::new()
            } else {
                let options = self.options;
                let retain = options.retain_graph || options.create_graph;
                let context = node.context(retain, options.create_graph)?;
                rules::backward(&context, &grads)
                    .map_err(|e| e.context(format!("backward of {}", node.rule.name())))?
            };
            // A leaf behind an edge without a gradient still learns that this op is done.
            let mut inputs = inputs.into_iter();
            for edge in &node.edges {
                self.send(edge, inputs.next().flatten())?;
            }
        }
        Ok(())
    }
}

fn add_into(slot: &mut Option<Tensor>, grad: Tensor) -> Result<()> {
    *slot = Some(match slot.take() {
        None => grad,
        Some(sum) => sum.add(&grad)?,
    });
    Ok(())
}

/// One pass from `roots` with their gradients.
fn pass(
    roots: &[(&Tensor, Tensor)],
    options: GradOptions,
    wanted: Option<HashMap<Key, Option<Tensor>>>,
) -> Result<Option<HashMap<Key, Option<Tensor>>>> {
    let mut pass = Pass {
        options,
        heap: BinaryHeap::new(),
        grads: HashMap::default(),
        leaves: HashMap::default(),
        wanted,
    };
    with_grad_mode(options.create_graph, || {
        let tensors: Vec<&Tensor> = roots.iter().map(|(tensor, _)| *tensor).collect();
        pass.count(&tensors);
        for (tensor, grad) in roots {
            pass.send(&tensor.0.edge, Some(grad.clone()))?;
        }
        pass.run()
    })?;
    Ok(pass.wanted)
}

/// The gradient a pass starts with: ones for a scalar, or what was given.
fn seed(root: &Tensor, given: Option<&Tensor>) -> Result<Tensor> {
    if !root.requires_grad() {
        return Err(Error::state(
            "backward",
            format!("the tensor of shape {} requires no gradient", root.shape()),
        )
        .help(
            "none of what it was computed from does, or it was computed inside no_grad or detached",
        ));
    }
    match given {
        None if root.elements() == 1 => Tensor::ones(*root.shape(), root.dtype(), root.device()),
        None => Err(Error::shape(
            "backward",
            format!(
                "only a tensor of one element starts backward by itself, this one has shape {}",
                root.shape()
            ),
        )
        .help("sum or average it, or give its gradient")),
        Some(grad) if grad.meta() != root.meta() => Err(Error::shape(
            "backward",
            format!(
                "gradient {} {} for a tensor {} {}",
                grad.dtype(),
                grad.shape(),
                root.dtype(),
                root.shape()
            ),
        )),
        Some(grad) if grad.device() != root.device() => Err(Error::new(
            drivetrain_core::ErrorKind::Device,
            "backward",
            format!("gradient on {}, tensor on {}", grad.device(), root.device()),
        )
        .help("gradient.to(tensor.device())?")),
        Some(grad) => Ok(grad.clone()),
    }
}

impl Tensor {
    /// Computes the gradients of this one-element tensor and adds them to [`Tensor::grad`] of the leaves it
    /// came from. The graph is freed.
    ///
    /// # Errors
    /// More than one element, no gradient required, or a graph freed before.
    #[track_caller]
    pub fn backward(&self) -> Result<()> {
        self.backward_with(None, GradOptions::default())
    }

    /// [`Tensor::backward`] from a given gradient, with options.
    ///
    /// # Errors
    /// As [`Tensor::backward`]; or a gradient of another shape, dtype or device.
    #[track_caller]
    pub fn backward_with(&self, gradient: Option<&Tensor>, options: GradOptions) -> Result<()> {
        let seed = seed(self, gradient)?;
        pass(&[(self, seed)], options, None).map(|_| ())
    }
}

/// Gradients of the sum of `outputs` (each of one element) with respect to `inputs`, without touching any
/// leaf's `grad`. `None` for an input that the outputs do not depend on.
///
/// # Errors
/// As [`Tensor::backward`]; or an input that requires no gradient.
#[track_caller]
pub fn grad(outputs: &[&Tensor], inputs: &[&Tensor]) -> Result<Vec<Option<Tensor>>> {
    grad_with(outputs, &[], inputs, GradOptions::default())
}

/// [`grad`] from given gradients of the outputs (none: ones), with options.
///
/// # Errors
/// As [`grad`].
#[track_caller]
pub fn grad_with(
    outputs: &[&Tensor],
    gradients: &[Option<&Tensor>],
    inputs: &[&Tensor],
    options: GradOptions,
) -> Result<Vec<Option<Tensor>>> {
    let mut wanted = HashMap::new();
    for (i, input) in inputs.iter().enumerate() {
        let Some(key) = key(&input.0.edge) else {
            return Err(Error::state(
                "grad",
                format!("input {i} of shape {} requires no gradient", input.shape()),
            ));
        };
        wanted.insert(key, None);
    }
    let mut roots = Vec::new();
    for (i, output) in outputs.iter().enumerate() {
        roots.push((*output, seed(output, gradients.get(i).copied().flatten())?));
    }
    let found = pass(&roots, options, Some(wanted))?.unwrap_or_default();
    let grads = inputs.iter().map(|input| {
        let key = key(&input.0.edge)?;
        found.get(&key).cloned().flatten()
    });
    Ok(grads.collect())
}
