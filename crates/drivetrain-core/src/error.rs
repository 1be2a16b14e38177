//! The one error type: what happened, with which values, where, and what to try.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;

/// `Result` with Drivetrain's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of thing went wrong, for programs that react to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Shapes that do not fit the operation or each other.
    Shape,
    /// A dtype that the operation does not take.
    DType,
    /// An argument out of its range (a dimension, a stride of 0, a negative rate).
    Argument,
    /// A value inside a tensor out of its range (an index, a class label).
    Value,
    /// Tensors on different devices in one operation.
    Device,
    /// A device or backend that is not there, with the reason.
    Unavailable,
    /// The device does not have this operation.
    Unsupported,
    /// Not enough memory.
    OutOfMemory,
    /// The call does not fit the state (backward twice, a graph freed).
    State,
    /// Reading or writing a file or a socket failed.
    Io,
    /// A file's content is not what its format asks for.
    Format,
    /// A backend failed inside.
    Backend,
}

/// An error in four parts: what, with which values, where, what to try.
///
/// It prints on one line: `matmul: inner sizes differ, lhs [8, 3] rhs [4, 5] on cuda:0; help: …`.
///
/// ```
/// use drivetrain_core::{Error, ErrorKind};
/// let error = Error::shape("matmul", "inner sizes differ, lhs [8, 3] rhs [4, 5]")
///     .on("cuda:0")
///     .help("transpose rhs?");
/// assert_eq!(error.kind(), ErrorKind::Shape);
/// assert_eq!(
///     error.to_string(),
///     "matmul: inner sizes differ, lhs [8, 3] rhs [4, 5] on cuda:0; help: transpose rhs?"
/// );
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    operation: Cow<'static, str>,
    message: String,
    device: Option<String>,
    help: Option<String>,
    context: Vec<String>,
    location: &'static Location<'static>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of `kind` raised by `operation`; remembers the caller's place in the source.
    #[track_caller]
    pub fn new(
        kind: ErrorKind,
        operation: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Error(Box::new(Inner {
            kind,
            operation: operation.into(),
            message: message.into(),
            device: None,
            help: None,
            context: Vec::new(),
            location: Location::caller(),
            source: None,
        }))
    }

    /// An [`ErrorKind::Shape`] error.
    #[track_caller]
    pub fn shape(operation: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Shape, operation, message)
    }

    /// An [`ErrorKind::DType`] error.
    #[track_caller]
    pub fn dtype(operation: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::DType, operation, message)
    }

    /// An [`ErrorKind::Argument`] error.
    #[track_caller]
    pub fn argument(operation: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Argument, operation, message)
    }

    /// An [`ErrorKind::Value`] error.
    #[track_caller]
    pub fn value(operation: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Value, operation, message)
    }

    /// An [`ErrorKind::State`] error.
    #[track_caller]
    pub fn state(operation: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::State, operation, message)
    }

    /// An [`ErrorKind::Format`] error.
    #[track_caller]
    pub fn format(operation: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Format, operation, message)
    }

    /// An [`ErrorKind::Unsupported`] error.
    #[track_caller]
    pub fn unsupported(
        operation: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self::new(ErrorKind::Unsupported, operation, message)
    }

    /// An [`ErrorKind::Unavailable`] error.
    #[track_caller]
    pub fn unavailable(
        operation: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self::new(ErrorKind::Unavailable, operation, message)
    }

    /// An [`ErrorKind::Backend`] error.
    #[track_caller]
    pub fn backend(operation: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Backend, operation, message)
    }

    /// An [`ErrorKind::Io`] error that names the file (or address) and keeps its cause.
    #[track_caller]
    pub fn io(
        operation: impl Into<Cow<'static, str>>,
        what: impl fmt::Display,
        cause: std::io::Error,
    ) -> Self {
        Self::new(ErrorKind::Io, operation, format!("{what}: {cause}")).caused_by(cause)
    }

    /// Says on which device it happened.
    #[must_use]
    pub fn on(mut self, device: impl fmt::Display) -> Self {
        self.0.device.get_or_insert_with(|| device.to_string());
        self
    }

    /// Says what to try.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
        self
    }

    /// Adds where in the caller's structure it happened (`layer 2.weight`, `epoch 3`); outermost last.
    #[must_use]
    pub fn context(mut self, context: impl Into<String>) -> Self {
        self.0.context.push(context.into());
        self
    }

    /// Keeps the error below this one, for [`std::error::Error::source`].
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(cause.into());
        self
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation that raised it.
    pub fn operation(&self) -> &str {
        &self.0.operation
    }

    /// What happened, without the operation, the device and the help.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where in the source it was raised.
    pub fn location(&self) -> &'static Location<'static> {
        self.0.location
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0;
        for context in inner.context.iter().rev() {
            write!(f, "{context}: ")?;
        }
        write!(f, "{}: {}", inner.operation, inner.message)?;
        if let Some(device) = &inner.device {
            write!(f, " on {device}")?;
        }
        if let Some(help) = &inner.help {
            write!(f, "; help: {help}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({:?}, at {})", self.0.kind, self.0.location)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source: &(dyn std::error::Error + 'static) = self.0.source.as_deref()?;
        Some(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_small_and_crosses_threads() {
        fn assert<T: Send + Sync + 'static>() {}
        assert::<Error>();
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn prints_context_outermost_first() {
        let error = Error::argument("relu", "x")
            .context("inner")
            .context("outer");
        assert_eq!(error.to_string(), "outer: inner: relu: x");
        assert!(format!("{error:?}").contains("error.rs"));
    }
}
