//! Making tensors: constants, ranges, random numbers, host data.

use crate::Tensor;
use crate::movement::user_shape;
use crate::run::run_source;
use drivetrain_core::half::{bf16, f16};
use drivetrain_core::random::{State, blocks};
use drivetrain_core::{
    DType, Device, Element, Error, IntoShape, Meta, Primitive, RandomKind, Result, Scalar, Shape,
};
use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

/// The process's sequence of random numbers: where the next draw begins.
static NEXT: Mutex<Option<State>> = Mutex::new(None);

/// Starts the process's random numbers anew: everything drawn afterwards (tensors, initial weights, dropout)
/// depends on `seed` alone, on every device. Without it each process draws other numbers.
pub fn manual_seed(seed: u64) {
    let state = State {
        seed,
        stream: 0,
        offset: 0,
    };
    *NEXT.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
}

thread_local! {
    /// This thread's own sequence, inside [`with_seed`].
    static OWN: Cell<Option<State>> = const { Cell::new(None) };
}

/// Runs `body` with random numbers of its own on this thread: they depend on `seed` alone, whatever other threads
/// draw meanwhile, and the process's sequence is where it was afterwards.
///
/// ```
/// # use drivetrain_cpu as _;
/// # use drivetrain_tensor::{DType, Device, Tensor, with_seed};
/// let device = Device::open("cpu")?;
/// let draw = || with_seed(7, || Tensor::rand([4], DType::F32, &device)?.to_vec::<f32>());
/// assert_eq!(draw()?, draw()?);
/// # Ok::<(), drivetrain_tensor::Error>(())
/// ```
pub fn with_seed<R>(seed: u64, body: impl FnOnce() -> R) -> R {
    struct Restore(Option<State>);
    impl Drop for Restore {
        fn drop(&mut self) {
            OWN.set(self.0);
        }
    }
    let _restore = Restore(OWN.replace(Some(State {
        seed,
        stream: 0,
        offset: 0,
    })));
    body()
}

/// The place of a draw of so many counter blocks, which the next draw will begin after.
fn draw(blocks: u64) -> State {
    if let Some(start) = OWN.get() {
        OWN.set(Some(State {
            offset: start.offset.wrapping_add(blocks),
            ..start
        }));
        return start;
    }
    let mut next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let state = next.get_or_insert_with(|| State {
        seed: entropy(),
        stream: 0,
        offset: 0,
    });
    let start = *state;
    state.offset = state.offset.wrapping_add(blocks);
    start
}

/// A generator for the host that draws from the process's random numbers: for initial weights and shuffles.
pub fn host_generator() -> drivetrain_core::random::Generator {
    let state = draw(1);
    // A stream for each draw; device draws are all in stream 0.
    drivetrain_core::random::Generator::new(state.seed, state.offset.wrapping_add(1))
}

/// A seed that differs from process to process: the standard library's own hash keys come from the system.
fn entropy() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
}

/// Host data that is a tensor's worth: scalars, slices, vectors and nested arrays of elements.
pub trait IntoData {
    /// The innermost type.
    type Element: Element;
    /// The shape.
    ///
    /// # Errors
    /// Lists of different lengths side by side.
    fn data_shape(&self) -> Result<Vec<usize>>;
    /// The elements, row-major, appended.
    fn append(&self, elements: &mut Vec<Self::Element>);
}

macro_rules! single_elements {
    ($($type:ty),*) => {
        $(impl IntoData for $type {
            type Element = $type;
            fn data_shape(&self) -> Result<Vec<usize>> {
                Ok(Vec::new())
            }
            fn append(&self, elements: &mut Vec<$type>) {
                elements.push(*self);
            }
        })*
    };
}
single_elements!(f32, f64, f16, bf16, i64, i32, u8, bool);

impl<D: IntoData> IntoData for [D] {
    type Element = D::Element;
    fn data_shape(&self) -> Result<Vec<usize>> {
        let mut inner = None;
        for (i, item) in self.iter().enumerate() {
            let shape = item.data_shape()?;
            if let Some(first) = inner.replace(shape.clone()).filter(|first| *first != shape) {
                return Err(Error::shape(
                    "from_data",
                    format!("list {i} has shape {shape:?}, the one before it {first:?}"),
                ));
            }
        }
        Ok([vec![self.len()], inner.unwrap_or_default()].concat())
    }
    fn append(&self, elements: &mut Vec<D::Element>) {
        self.iter().for_each(|item| item.append(elements));
    }
}

impl<D: IntoData, const N: usize> IntoData for [D; N] {
    type Element = D::Element;
    fn data_shape(&self) -> Result<Vec<usize>> {
        self.as_slice().data_shape()
    }
    fn append(&self, elements: &mut Vec<D::Element>) {
        self.as_slice().append(elements);
    }
}

impl<D: IntoData> IntoData for Vec<D> {
    type Element = D::Element;
    fn data_shape(&self) -> Result<Vec<usize>> {
        self.as_slice().data_shape()
    }
    fn append(&self, elements: &mut Vec<D::Element>) {
        self.as_slice().append(elements);
    }
}

impl<D: IntoData + ?Sized> IntoData for &D {
    type Element = D::Element;
    fn data_shape(&self) -> Result<Vec<usize>> {
        (**self).data_shape()
    }
    fn append(&self, elements: &mut Vec<D::Element>) {
        (**self).append(elements);
    }
}

impl Tensor {
    /// A tensor of nested arrays or vectors: `Tensor::from_data([[1.0f32, 2.0], [3.0, 4.0]], &device)`.
    ///
    /// # Errors
    /// Rows of different lengths, or a device without room.
    #[track_caller]
    pub fn from_data(data: impl IntoData, device: &Device) -> Result<Tensor> {
        let shape = data.data_shape()?;
        let mut elements = Vec::new();
        data.append(&mut elements);
        Tensor::from_slice(&elements, shape, device)
    }

    /// A tensor of these elements, row-major.
    ///
    /// # Errors
    /// When their number is not the shape's; names both.
    #[track_caller]
    pub fn from_slice<T: Element>(
        elements: &[T],
        shape: impl IntoShape,
        device: &Device,
    ) -> Result<Tensor> {
        Tensor::from_bytes(T::to_bytes(elements), T::DTYPE, shape, device)
    }

    /// A tensor of these elements, row-major. The vector's memory is freed.
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    #[track_caller]
    pub fn from_vec<T: Element>(
        elements: Vec<T>,
        shape: impl IntoShape,
        device: &Device,
    ) -> Result<Tensor> {
        Tensor::from_slice(&elements, shape, device)
    }

    /// A tensor of elements given as bytes in native order.
    ///
    /// # Errors
    /// When their number is not the shape's.
    #[track_caller]
    pub fn from_bytes(
        bytes: &[u8],
        dtype: DType,
        shape: impl IntoShape,
        device: &Device,
    ) -> Result<Tensor> {
        let shape = user_shape("from_slice", shape)?;
        let meta = Meta::new(dtype, shape);
        if meta.bytes() != bytes.len() {
            return Err(Error::shape(
                "from_slice",
                format!(
                    "{} elements for shape {shape} of {}",
                    bytes.len() / dtype.size(),
                    shape.elements()
                ),
            ));
        }
        let tensor = Tensor::allocate(meta, device)?;
        tensor.0.memory.upload(bytes, 0)?;
        Ok(tensor)
    }

    /// Every element `value`.
    ///
    /// # Errors
    /// A device without room.
    #[track_caller]
    pub fn full(
        shape: impl IntoShape,
        value: impl Into<Scalar>,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        let meta = Meta::new(dtype, user_shape("full", shape)?);
        run_source(
            Primitive::Fill {
                value: value.into(),
            },
            &[],
            meta,
            device,
        )
    }

    /// Zeros.
    ///
    /// # Errors
    /// A device without room.
    #[track_caller]
    pub fn zeros(shape: impl IntoShape, dtype: DType, device: &Device) -> Result<Tensor> {
        Tensor::full(shape, 0, dtype, device)
    }

    /// Ones.
    ///
    /// # Errors
    /// A device without room.
    #[track_caller]
    pub fn ones(shape: impl IntoShape, dtype: DType, device: &Device) -> Result<Tensor> {
        Tensor::full(shape, 1, dtype, device)
    }

    /// Zeros of this tensor's shape, dtype and device.
    ///
    /// # Errors
    /// A device without room.
    #[track_caller]
    pub fn zeros_like(&self) -> Result<Tensor> {
        Tensor::zeros(*self.shape(), self.dtype(), self.device())
    }

    /// Ones of this tensor's shape, dtype and device.
    ///
    /// # Errors
    /// A device without room.
    #[track_caller]
    pub fn ones_like(&self) -> Result<Tensor> {
        Tensor::ones(*self.shape(), self.dtype(), self.device())
    }

    /// `start`, `start + step`, … before `end`, in the dtype `T`.
    ///
    /// # Errors
    /// A step of 0 or away from `end`, or bounds that are not finite.
    #[track_caller]
    pub fn arange<T: Element>(start: T, end: T, step: T, device: &Device) -> Result<Tensor> {
        let (first, last, step): (Scalar, Scalar, Scalar) = (start.into(), end.into(), step.into());
        let refuse =
            |why| Error::argument("arange", format!("{why}: from {first} to {last} by {step}"));
        if let (Scalar::I64(a), Scalar::I64(b), Scalar::I64(s)) = (first, last, step) {
            if s == 0 || (b as i128 - a as i128) * (s as i128) < 0 {
                return Err(refuse("the step does not lead to the end"));
            }
            let span = (b as i128 - a as i128).unsigned_abs();
            let count = usize::try_from(span.div_ceil(s.unsigned_abs() as u128))
                .map_err(|_| refuse("too many elements"))?;
            Shape::new(&[count])?;
            let values: Vec<T> = (0..count as i128)
                .map(|i| T::from_scalar(Scalar::I64((a as i128 + i * s as i128) as i64)))
                .collect();
            return Tensor::from_slice(&values, [count], device);
        }
        let (a, b, s) = (first.as_f64(), last.as_f64(), step.as_f64());
        let count = ((b - a) / s).ceil();
        if s == 0.0 || !count.is_finite() || count < 0.0 {
            return Err(refuse("the step does not lead to the end"));
        }
        if count > (1u64 << 40) as f64 {
            return Err(refuse("too many elements"));
        }
        let values: Vec<T> = (0..count as usize)
            .map(|i| T::from_scalar(Scalar::F64(a + i as f64 * s)))
            .collect();
        Tensor::from_slice(&values, [count as usize], device)
    }

    /// `count` numbers evenly spaced from `start` to `end`, both included, as `dtype`.
    ///
    /// # Errors
    /// A dtype that is not a float.
    #[track_caller]
    pub fn linspace(
        start: f64,
        end: f64,
        count: usize,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        if !dtype.is_float() {
            return Err(Error::dtype("linspace", format!("{dtype} is not a float")));
        }
        Shape::new(&[count])?;
        let step = if count > 1 {
            (end - start) / (count - 1) as f64
        } else {
            0.0
        };
        // From both ends, so that the last is exactly `end`.
        let value = |i: usize| {
            if 2 * i < count {
                start + i as f64 * step
            } else {
                end - (count - 1 - i) as f64 * step
            }
        };
        let values: Vec<f64> = (0..count).map(value).collect();
        Tensor::from_slice(&values, [count], device)?.to_dtype(dtype)
    }

    /// The identity matrix.
    ///
    /// # Errors
    /// A device without room.
    #[track_caller]
    pub fn eye(n: usize, dtype: DType, device: &Device) -> Result<Tensor> {
        let rows = Tensor::index_along([n, n], 0, device)?;
        rows.eq(&Tensor::index_along([n, n], 1, device)?)?
            .to_dtype(dtype)
    }

    /// Each element's index along `dim`, as I64.
    ///
    /// # Errors
    /// A dimension out of range.
    #[track_caller]
    pub fn index_along(shape: impl IntoShape, dim: isize, device: &Device) -> Result<Tensor> {
        let shape = user_shape("index_along", shape)?;
        let dim = shape.dim("index_along", dim)? as u8;
        if shape.rank() == 0 {
            return Tensor::zeros(shape, DType::I64, device);
        }
        run_source(
            Primitive::Iota { dim },
            &[],
            Meta::new(DType::I64, shape),
            device,
        )
    }

    #[track_caller]
    fn random(
        kind: RandomKind,
        shape: impl IntoShape,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        let meta = Meta::new(dtype, user_shape(kind.name(), shape)?);
        if !dtype.is_float() && kind != RandomKind::Bits {
            return Err(Error::dtype(kind.name(), format!("{dtype} is not a float")));
        }
        let state = draw(blocks(kind, dtype, meta.shape.elements() as u64));
        let state = Tensor::from_slice(&state.to_operand(), [3], device)?;
        run_source(Primitive::Random { kind }, &[&state], meta, device)
    }

    /// Uniform random numbers in [0, 1), the same on every device for a seed.
    ///
    /// # Errors
    /// A dtype that is not a float.
    #[track_caller]
    pub fn rand(shape: impl IntoShape, dtype: DType, device: &Device) -> Result<Tensor> {
        Tensor::random(RandomKind::Uniform, shape, dtype, device)
    }

    /// Standard normal random numbers, the same on every device for a seed.
    ///
    /// # Errors
    /// A dtype that is not a float.
    #[track_caller]
    pub fn randn(shape: impl IntoShape, dtype: DType, device: &Device) -> Result<Tensor> {
        Tensor::random(RandomKind::Normal, shape, dtype, device)
    }

    /// Random integers (I64) in `low..high`, one 32-bit word each.
    ///
    /// # Errors
    /// An empty range, or one wider than 2³¹.
    #[track_caller]
    pub fn randint(low: i64, high: i64, shape: impl IntoShape, device: &Device) -> Result<Tensor> {
        let width = high as i128 - low as i128;
        if width <= 0 || width > 1 << 31 {
            return Err(Error::argument(
                "randint",
                format!("range {low}..{high} is empty or wider than 2^31"),
            ));
        }
        // word·width/2³²: as even as 32 bits can be, and it fits I64.
        let bits = Tensor::random(RandomKind::Bits, shape, DType::I64, device)?;
        bits.mul(width as i64)?.floor_divide(1i64 << 32)?.add(low)
    }

    /// 1 with probability `p`, else 0.
    ///
    /// # Errors
    /// A probability outside 0..=1.
    #[track_caller]
    pub fn bernoulli(
        p: f64,
        shape: impl IntoShape,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::argument(
                "bernoulli",
                format!("probability {p} is not in 0..=1"),
            ));
        }
        Tensor::rand(shape, DType::F32, device)?
            .lt(p)?
            .to_dtype(dtype)
    }

    /// A random order of `0..n`, as I64.
    ///
    /// # Errors
    /// A device without room.
    #[track_caller]
    pub fn randperm(n: usize, device: &Device) -> Result<Tensor> {
        let mut generator = host_generator();
        let order: Vec<i64> = generator
            .permutation(n)
            .into_iter()
            .map(|i| i as i64)
            .collect();
        Tensor::from_slice(&order, [n], device)
    }
}
