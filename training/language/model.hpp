#pragma once

#include <cstdint>

namespace ringmaster::training {

/// What is trained, in one step, and what strategies may choose about it.
struct model {
  uint32_t layers = 1;
  uint64_t global_batch = 1;      ///< Samples of a step, of all ranks.
  uint64_t micro_batch = 1;       ///< Samples that a rank works on at once.
  uint32_t chunks = 2;            ///< Parts of the model that a rank has in interleaved pipelines.
  uint32_t tensor = 0;            ///< Ranks that share each layer; 0: as the strategy likes.
  uint32_t data = 0;              ///< Ranks, or groups of them, that have other samples; 0: as the strategy likes.
  bool sequence_parallel = false; ///< Between layers, tensor-parallel ranks share the positions.
  uint32_t zero = 0;          ///< Pipelines: what of a stage its data-parallel ranks share, as ZeRO's stages 1 to 3 do.
  uint32_t virtual_ranks = 0; ///< Parts of the global batch whose gradients are added in order; 0: one for each rank.
  bool uneven = false;        ///< Data-parallel ranks may have one sample more than others.
  bool replicated = false;    ///< Layers have parameters that all ranks that share them have: see `all_reduce`.
  uint32_t prefetch = 1;      ///< fsdp, hsdp: layers that are gathered before they are needed.
  uint32_t shard_ranks = 0;   ///< hsdp: ranks that share the model; 0: a host's, or half.
  uint32_t context = 0;       ///< Ranks that share the positions of samples; 0: as the strategy likes.
  uint32_t experts = 0;       ///< Ranks that share the experts of a layer; 0: as the strategy likes.
  uint32_t dense_first = 0;   ///< Layers at the begin that have no experts, even if others do.
  bool blocks = true;         ///< 3d: with chunks and experts a forward and a backward are one block.
  bool for_real = false;      ///< Layers are what they are, and cannot be given positions or experts.
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
