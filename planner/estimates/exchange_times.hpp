#pragma once

#include "planner/estimates/rank_parameters.hpp"
#include "planner/systems/gpu_system.hpp"

namespace ringmaster::training {

/// An all_reduce of `bytes` over neighbours: a ring within a domain, then among domains.
double tensor_all_reduce_time(double bytes, uint32_t ranks, const gpu_system& on);

/// Keys and values of a rank's positions of so many samples.
double key_bytes(const language_model& m, const parallel_setting& how, double samples);

/// Keys and values, `bytes` of a rank, so many hops along the context's ranks, which lie among `devices`.
double context_exchange_time(double bytes, double hops, uint32_t devices, const gpu_system& on);

/// Of `domains` equal ones that share the experts, those beside its own that a position's choices lie in: the mean.
double other_domains(const expert_layers& x, double domains);

/// An all_to_all over `ranks` neighbours: each has `rows` positions of `row_bytes`, which go to the experts that they
/// have chosen, once to a rank that has several of them, and once over the network to a domain (as DeepEP's,
/// DeepSeek-AI 2025).
double dispatch_time(double rows, double row_bytes, const expert_layers& x, uint32_t ranks, const gpu_system& on);

/// Of so many ranks, those that share a domain that has room for `room` of them, if all domains have as many.
uint32_t neighbours(uint32_t ranks, double room);

/// `bytes` on a rank, all_reduced over `ranks` that lie `stride` apart among `devices`.
double all_reduce_time(double bytes, const gpu_system& on, uint32_t ranks, uint32_t stride, uint32_t devices);

/// `bytes` of each of the parameters, all_reduced over those that share them: `replicas` ranks, and experts' own ones.
double all_reduce_time(double bytes, const rank_parameters& x, uint32_t replicas, const gpu_system& on,
                       const parallel_setting& how);

/// `bytes` in all, gathered or reduced and scattered once round a ring (as NCCL's) over `ranks` that lie `stride` apart
/// among `devices`: by the narrower of the links within domains and the cards between them, as all go at once.
double ring_time(double bytes, const gpu_system& on, uint32_t ranks, uint32_t stride, uint32_t devices);

/// The same of `bytes` of each of the parameters, among those that share them fully.
double shard_time(double bytes, const rank_parameters& x, const gpu_system& on, const parallel_setting& how);

/// The steps of a ring once round: what an all_gather or a reduce_scatter costs beside its bytes.
double ring_latency(const gpu_system& on, uint32_t ranks, uint32_t stride, uint32_t devices);

/// The same of a layer, among those that share its weights fully; experts that ranks have apart have a ring of their
/// own.
double shard_latency(bool has_experts, const gpu_system& on, const parallel_setting& how);

/// Gradients of a shard's parameters, all_reduced among the groups that share weights fully; experts have one group,
/// unless they go along.
double groups_all_reduce_time(const rank_parameters& shard, const gpu_system& on, const parallel_setting& how);

/// Those of a layer or stage that two ranks of different stages have.
double mirror_all_reduce_time(double parameters, const gpu_system& on, const mesh& shape);

/// An activation from a stage to the next: each tensor-parallel rank has its part of the positions, or over a network
/// sends a part. Where a domain has room for two stages (a stage's ranks are neighbours, as Megatron-LM has them), the
/// mean of a hop within and one between: a stage at a domain's end, which is the slowest, has one neighbour in it.
double hop_time(const language_model& m, const gpu_system& on, const parallel_setting& how);
/// Hops to a rank for a micro-batch, to one that has the most: of its chunks' forwards and backwards.
uint32_t messages_of(const parallel_setting& how);
/// Of such a hop, what its receiver stands still for: a part, or what it takes longer than a stage's mean work between
/// two messages, of `whole_model` seconds for a micro-batch.
double exposed_hop_time(double hop, double whole_model, const gpu_system& on, const parallel_setting& how);

} // namespace ringmaster::training
