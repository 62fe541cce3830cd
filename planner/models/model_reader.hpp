#pragma once

#include "planner/models/model_families.hpp"
#include "runtime/text/json_field.hpp"

#include <caf/error.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ringmaster::training {

/// The members of a model's configuration file, read one by one. The first error is kept, and a wrong member is
/// replaced by a harmless value. A member that is null counts as missing.
class config_members {
public:
  struct allowed {
    uint32_t most = 1 << 20, least = 1;
    std::optional<uint32_t> absent{}; ///< Default; nothing: the member is required.
  };

  /// The file's object, whose document must stay; or that of a part, and the one around it, which may have its flags.
  explicit config_members(json_field object) : object_(std::move(object)) {}
  config_members(json_field object, json_field around) : object_(std::move(object)), around_(std::move(around)) {}

  bool has(std::string_view key) const { return object_.at(key).exists() && !object_.at(key).is_null(); }
  bool is_null(std::string_view key) const { return object_.at(key).is_null(); }
  /// Whether it is this text.
  bool says(std::string_view key, std::string_view text) const;
  /// The first of several names that the file has, else the first.
  std::string_view first_of(std::span<const std::string_view> keys) const;
  uint32_t size(std::string_view key, const allowed& x);
  uint32_t size(std::string_view key) { return size(key, allowed{}); }
  bool flag(std::string_view key, bool absent);
  /// Empty if it is missing.
  std::vector<json_field> list(std::string_view key);

  /// Refuses other values, which a language_model cannot express.
  void must_be(std::string_view key, bool usual);
  void must_be_one(std::string_view key);

  /// The member is not what it must be: "a number that divides the 32 heads".
  void refuse(std::string_view key, std::string_view must_be);
  void keep(caf::error problem);
  const caf::error& problem() const { return problem_; }

private:
  json_field object_;
  std::optional<json_field> around_;
  caf::error problem_;
};

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
