//! Neural-network layers, losses and initialisers of Drivetrain.
