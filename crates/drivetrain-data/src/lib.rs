//! Datasets, loaders, samplers and transforms of Drivetrain.
