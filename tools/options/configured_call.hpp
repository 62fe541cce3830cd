#pragma once

#include "actors/configuration/configuration.hpp"
#include "tools/options/tool_command.hpp"

#include <string>
#include <vector>

namespace ringmaster {

/// A call of a command with a configuration: a file, and keys on the command line, "--section.key=V". The file is that
/// of
/// --conf or of `find_configuration`.
class configured_call : public command_call {
public:
  void declare(option_table& table) final;
  caf::expected<bool> configure(const option_table& table) override;

protected:
  /// Adds the command's options, as `declare` of other calls.
  virtual void declare_options(option_table& table) = 0;
  /// An option for a key of the configuration, with the key's default.
  option& key_option(option_table& table, const std::string& name, const std::string& key);
  /// --join.
  option& join_option(option_table& table);
  /// --secret-file, --certificate, --key, --authority and --insecure, which --join comes with.
  void trust_options() { has_trust_options_ = true; }
  /// --join and --timeout, for a command that can start a cluster.
  void join_options(option_table& table);

  /// Whether the command line has the key: "--device.count=4".
  bool is_given(const std::string& key) const { return !values_given(key).empty(); }
  /// All values of the key on the command line, as a key or an option, in order; the last one counts.
  std::vector<std::string> values_given(const std::string& key) const;

  /// "FILE", or "no file, the defaults".
  std::string configuration_origin() const;

  configuration cfg_;

private:
  /// The same error, with the option's name if the user wrote an option instead of the key.
  caf::error as_typed(const caf::error& problem) const;

  /// A given option for a key.
  struct given_option {
    std::string name, key, value;
  };
  std::string conf_;
  bool has_trust_options_ = false;
  bool insecure_ = false;
  std::vector<given_option> given_options_;
  std::vector<std::string> settings_; ///< Arguments for the configuration.
};

} // namespace ringmaster
