//! gRPC and HTTP in front of the engine.

pub mod grpc;
