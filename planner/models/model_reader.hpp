#pragma once

#include "planner/models/config_members.hpp"
#include "planner/models/model_families.hpp"

namespace ringmaster::training {

/// The largest default for positions of a sample; a file's model can have more.
constexpr uint32_t sequence_of_files = 8192;

/// Reads a family's configuration file. A size may have any of the names that files of transformers have for it.
/// A wrong member is replaced by a harmless value: check `config_members::problem` before the result is used.
class model_reader {
public:
  /// Both must outlive it. `sequence`: positions of a sample, where they are given.
  model_reader(config_members& file, const model_family& family, std::optional<uint32_t> sequence)
    : file_(file), family_(family), sequence_(sequence) {}

  language_model read();

private:
  void read_sizes();
  void read_positions();
  void read_heads();
  void read_latent();
  void read_biases();
  void read_norms();
  void read_falcon();
  void read_experts();
  void read_groups();
  void read_linear();
  void read_windows();
  /// Which layers have windows, or linear attention, in any of the ways that files state it.
  std::vector<bool> windowed_layers_of_file();
  void set_windowed(const std::vector<bool>& layers);
  bool is(const bias_rule& rule) { return rule.member.empty() ? rule.absent : file_.flag(rule.member, rule.absent); }
  void refuse_experts();

  config_members& file_;
  const model_family& family_;
  std::optional<uint32_t> sequence_;
  language_model x_;
};

} // namespace ringmaster::training
