#pragma once

#include "actors/configuration/configuration.hpp"
#include "tools/options/tool_command.hpp"

#include <string>
#include <vector>

namespace ringmaster {

/// A call of a command that has the configuration, too: the file, and keys on the command line, "--section.key=V". The
/// file is that of --conf, else where `find_configuration` finds it.
class configured_call : public command_call {
public:
  void declare(option_table& table) final;
  caf::expected<bool> configure(const option_table& table) override;

protected:
  /// What `declare` does of any other call.
  virtual void declare_options(option_table& table) = 0;
  /// An option that stands for a key of the configuration, whose default is the key's.
  option& key_option(option_table& table, const std::string& name, const std::string& key);
  /// --join: the cluster that the command is to use.
  option& join_option(option_table& table);
  /// Of a command that can have a cluster of its own: that, and --timeout.
  void join_options(option_table& table);

  /// Whether the command line has the key itself: "--device.count=4".
  bool is_given(const std::string& key) const { return !values_given(key).empty(); }
  /// All that the command line says of the key, however it is written there, in its order; the last one counts.
  std::vector<std::string> values_given(const std::string& key) const;

  /// "FILE", or "no file, the defaults".
  std::string configuration_origin() const;

  configuration cfg_;

private:
  /// The same problem, of an option where the person has written one in place of the key.
  caf::error as_typed(const caf::error& problem) const;

  /// An option that stood there for a key.
  struct given_option {
    std::string name, key, value;
  };
  std::string conf_;
  std::vector<given_option> given_options_;
  std::vector<std::string> settings_; ///< What stood there for the configuration.
};

} // namespace ringmaster
