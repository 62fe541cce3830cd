#pragma once

#include "planner/estimates/stage_layers.hpp"
#include "planner/systems/gpu_system.hpp"

namespace ringmaster::training {

/// Seconds of an all_reduce of `bytes` over neighbours: a ring within a domain, then among domains.
double tensor_all_reduce_time(double bytes, uint32_t ranks, const gpu_system& on);

/// Bytes of keys and values of a rank's positions.
double key_bytes(const language_model& m, const training_setting& how, double samples);

/// Seconds of `hops` hops of a rank's keys and values, `bytes` each, along the context ranks among `devices`.
double context_exchange_time(double bytes, double hops, uint32_t devices, const gpu_system& on);

/// The mean number of other domains that hold a position's chosen experts, of `domains` equal ones.
double other_domains(const expert_layers& x, double domains);

/// An all_to_all over `ranks` neighbours: each has `rows` positions of `row_bytes`, which go to the experts that they
/// have chosen, once to a rank that has several of them, and once over the network to a domain (as DeepEP's,
/// DeepSeek-AI 2025).
double dispatch_time(double rows, double row_bytes, const expert_layers& x, uint32_t ranks, const gpu_system& on);

/// The largest divisor of `ranks` that fits into a domain with room for `room` of them.
uint32_t neighbours(uint32_t ranks, double room);

/// Seconds of an all_reduce of `bytes` per rank over `ranks` that are `stride` apart among `devices`.
double all_reduce_time(double bytes, const gpu_system& on, uint32_t ranks, uint32_t stride, uint32_t devices);

/// `bytes` of each of the parameters, all_reduced over those that share them: `replicas` ranks, and experts' own ones.
double all_reduce_time(double bytes, const rank_parameters& x, uint32_t replicas, const gpu_system& on,
                       const training_setting& how);

/// `bytes` in all, gathered or reduced and scattered once round a ring (as NCCL's) over `ranks` that lie `stride` apart
/// among `devices`: by the narrower of the links within domains and the cards between them, as all go at once.
double ring_time(double bytes, const gpu_system& on, uint32_t ranks, uint32_t stride, uint32_t devices);

/// The same of `bytes` of each of the parameters, among those that share them fully.
double shard_time(double bytes, const rank_parameters& x, const gpu_system& on, const training_setting& how);

/// The steps of a ring once round: what an all_gather or a reduce_scatter costs beside its bytes.
double ring_latency(const gpu_system& on, uint32_t ranks, uint32_t stride, uint32_t devices);

/// The same of a layer, among the ranks that share its weights fully. Experts with ranks of their own have a second
/// ring.
double shard_latency(bool has_experts, const gpu_system& on, const training_setting& how);

/// Gradients of a shard's parameters, all_reduced among the groups that share weights fully; experts have one group,
/// unless they go along.
double groups_all_reduce_time(const rank_parameters& shard, const gpu_system& on, const training_setting& how);

/// Gradients that two ranks of different stages both have.
double mirror_all_reduce_time(double parameters, const gpu_system& on, const mesh& shape);

/// An activation from a stage to the next: each tensor-parallel rank has its part of the positions, or over a network
/// sends a part. Where a domain has room for two stages (a stage's ranks are neighbours, as Megatron-LM has them), the
/// mean of a hop within and one between: a stage at a domain's end, which is the slowest, has one neighbour in it.
double hop_time(const language_model& m, const gpu_system& on, const training_setting& how);
/// Hops that the rank with the most of them receives for a micro-batch, forwards and backwards of all chunks.
uint32_t messages_of(const training_setting& how);
/// The part of such a hop that stalls its receiver: a fixed part, or the excess over a stage's mean work between two
/// messages. `whole_model`: seconds of all layers for a micro-batch.
double exposed_hop_time(double hop, double whole_model, const gpu_system& on, const training_setting& how);

} // namespace ringmaster::training
