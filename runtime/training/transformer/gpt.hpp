#pragma once

#include <caf/expected.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ringmaster::training {

/// A GPT: transformer layers of the usual shape, with an MLP of four times the hidden size, and tied embeddings.
struct gpt {
  std::string name = "own";
  uint32_t hidden = 0;
  uint32_t heads = 0;
  uint32_t layers = 0;
  uint32_t sequence = 2048; ///< Positions of a sample.
  uint32_t vocabulary = 50257;
};

/// Those that have names, with their sources in gpt.cpp.
std::span<const gpt> known_gpts();
/// Errors: invalid_argument, naming those that there are.
caf::expected<gpt> gpt_of(std::string_view name);

double parameters_of(const gpt& x);
/// Of its matrices; the first layer's has the embedding's with it.
double layer_parameters(const gpt& x, uint32_t layer);
/// Of a step without recomputation, as Megatron-LM counts them (Narayanan et al. 2021, equation 3 without
/// recomputation).
double flops_of(const gpt& x, double global_batch);

/// Whether a backward runs its forward again: not at all, the attention's core only (Korthikanti et al. 2022), or
/// all of it.
enum class recomputation : uint8_t { none, selective, full };

std::string_view name_of(recomputation x);

/// Bytes that a layer keeps for its backward, of `samples` samples at 2 bytes an element, on each of `tensor` ranks
/// that share it (Korthikanti et al. 2022, table 2).
double activation_bytes(const gpt& x, double samples, uint32_t tensor, bool sequence_parallel, recomputation again);

/// Bytes a parameter, on each of `ranks` data-parallel ones, in mixed precision with Adam (Rajbhandari et al. 2020):
/// 16 without sharding, 4 + 12/N, 2 + 14/N and 16/N in stages 1 to 3. Megatron-LM keeps gradients in 4 bytes: 2 more.
double zero_bytes(uint32_t stage, double ranks, double gradient_bytes = 2);

} // namespace ringmaster::training
