//! Tensors, views, autograd, printing and file formats of Drivetrain.
