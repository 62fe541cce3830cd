#pragma once

#include <ringmaster/strategy/parallel_setting.hpp>

#include <cstdint>

namespace ringmaster::training {

/// What one step trains, and what strategies may choose about it.
struct model {
  uint32_t layers = 1;         ///< Of the model.
  uint64_t global_batch = 1;   ///< Samples of a step, of all ranks.
  uint64_t micro_batch = 1;    ///< Samples that a rank works on at once.
  parallel_setting parallel{}; ///< How ranks share layers, samples and positions, where a strategy leaves it open.
  uint32_t virtual_ranks = 0;  ///< Parts of the global batch whose gradients are added in order; 0: one for each rank.
  bool uneven = false;         ///< Data-parallel ranks may have one sample more than others.
  bool replicated = false;     ///< Layers have parameters that all ranks that share them have: see `all_reduce`.
  uint32_t prefetch = 1;       ///< fsdp, hsdp: layers that are gathered before they are needed.
  uint32_t dense_first = 0;    ///< The first layers that have no experts, even if later ones do.
  bool blocks = true;          ///< 3d: with chunks and experts a forward and a backward are one block.
  bool for_real = false;       ///< Layers compute, and cannot be given positions or experts.
};

/// What a strategy does beside working on whole samples with whole layers or tensor shards of them.
enum class beyond : uint8_t {
  nothing,
  groups,    ///< Some of the ranks that have other samples have collectives by themselves.
  positions, ///< Ranks share the positions of samples: operations keys, attend and attend_backward, sequence shards of
             ///< attention's kinds, and forward, backward and loss of a sequence shard.
  experts,   ///< Every second layer is of experts: weights and activations that have form::experts.
};

} // namespace ringmaster::training
