#include "training/libtorch/libtorch_calls.hpp"

#include <ATen/Parallel.h>

extern "C" void openblas_set_num_threads(int count);

namespace ringmaster::training {

namespace {

/// Not while others ask for tensors, so before there are threads.
[[maybe_unused]] const bool has_own_memory = (use_own_tensor_memory(), true);

} // namespace

void compute_in_one_thread() {
  static const bool blas = (openblas_set_num_threads(1), true); // for all threads
  thread_local const bool own = (at::set_num_threads(1), true); // thread by thread
  static_cast<void>(blas && own);
}

} // namespace ringmaster::training
