#pragma once

#include <cstdint>

namespace ringmaster::training {

/// How ranks divide a training step among them: the degrees of parallelism, and what goes with them. A degree of 0 is
/// not given: the strategy chooses it.
struct parallel_setting {
  uint32_t tp = 0;     ///< Tensor parallel: ranks that share each layer.
  uint32_t cp = 0;     ///< Context parallel: ranks that share the positions of samples (ring attention).
  uint32_t dp = 0;     ///< Data parallel: ranks, or groups of them, that have different samples.
  uint32_t ep = 0;     ///< Expert parallel: ranks that share a layer's experts; of the tp x cp x dp ones, neighbours.
  uint32_t pp = 0;     ///< Pipeline parallel: stages of layers.
  uint32_t chunks = 2; ///< Interleaved pipelines: virtual stages of a rank (VPP). Overlapped sums: layers of a bucket.
  uint32_t zero = 0;   ///< ZeRO stage: what data-parallel ranks share of optimizer states, gradients and weights.
  uint32_t shard_ranks = 0;       ///< FSDP, HSDP: ranks that share the weights, which are gathered ahead.
  bool sequence_parallel = false; ///< Between layers, tensor-parallel ranks share the positions.

  friend bool operator==(const parallel_setting&, const parallel_setting&) = default;
};

} // namespace ringmaster::training
