//! What programs need every day, in one line: `use drivetrain::prelude::*;`.
//!
//! Tensors and devices, modules with all layers and losses, optimizers and schedules, data sets and loaders, and
//! the trainer. What is rarer stays in its module: [`crate::nn::init`], [`crate::tensor::formats`],
//! [`crate::optim::schedule`].
//!
//! ```
//! use drivetrain::prelude::*;
//!
//! #[derive(Module)]
//! struct Net {
//!     hidden: Linear,
//!     output: Linear,
//! }
//!
//! impl Layer for Net {
//!     fn forward(&self, x: &Tensor) -> Result<Tensor> {
//!         self.output.forward(&self.hidden.forward(x)?.relu()?)
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! manual_seed(0);
//! let device = Device::best()?;
//! let net = Net { hidden: Linear::new(4, 8, &device)?, output: Linear::new(8, 2, &device)? };
//! let loss = cross_entropy(
//!     &net.forward(&Tensor::randn([3, 4], DType::F32, &device)?)?,
//!     &Tensor::from_data([0i64, 1, 1], &device)?,
//!     &CrossEntropyOptions::default(),
//! )?;
//! let mut optimizer = AdamW::new(net.parameters(), 1e-3);
//! loss.backward()?;
//! optimizer.step()?;
//! # Ok(()) }
//! ```

pub use drivetrain_tensor::{
    AvgPoolOptions, Buffer, ConvOptions, ConvTransposeOptions, DType, Device, Element, Error,
    ErrorKind, Index, MaxPoolOptions, PadMode, Parameter, Result, Scalar, Shape, Tensor,
    detect_anomaly, enable_grad, grad, manual_seed, no_grad, with_seed,
};

pub use drivetrain_nn::loss::*;
pub use drivetrain_nn::{
    AdaptiveAvgPool2d, AdaptiveMaxPool2d, AvgPool1d, AvgPool2d, BatchNorm1d, BatchNorm2d, Celu,
    Constant, Conv1d, Conv2d, Conv3d, ConvTranspose2d, Dropout, Elu, Embedding, Flatten, Function,
    Gelu, GeluTanh, GroupNorm, Gru, Hardsigmoid, Hardswish, Hardtanh, Identity, InstanceNorm,
    Layer, LayerNorm, LeakyRelu, Linear, LogSigmoid, LogSoftmax, Lstm, LstmState, MaxPool1d,
    MaxPool2d, Mish, Mode, Module, MultiheadAttention, Relu, Relu6, RmsNorm, Selu, Sequential,
    Sigmoid, Silu, Softmax, Softplus, Softsign, StateDict, Tanh, TransformerEncoderLayer, Upsample,
};

pub use drivetrain_optim::{
    Adadelta, Adagrad, Adam, AdamW, NAdam, Optimizer, OptimizerState, RAdam, ReduceOnPlateau,
    RmsProp, Schedule, Scheduler, Sgd, clip_grad_norm, clip_grad_value,
};

pub use drivetrain_data::{
    Cifar10, Cifar100, Compose, CsvReader, DataLoader, Dataset, Image, ImageFolder, Mnist,
    Normalize, RandomCrop, RandomHorizontalFlip, Resize, Split, TensorDataset, ToTensor, Transform,
    VecDataset, random_split,
};

pub use drivetrain_train::{
    Accuracy, BatchSource, Callback, EarlyStopping, Evaluation, Flow, History, Metric, Progress,
    RunningMean, ScheduleEvery, TopK, Trainer,
};
