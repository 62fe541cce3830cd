#include "tools/options/configured_call.hpp"

#include "runtime/configuration/places.hpp"

#include <fmt/format.h>

namespace ringmaster {

namespace {

/// As one writes it behind an option: without quotation marks.
std::string default_of(const std::string& key) {
  options defaults;
  for (const auto& x : option_entries(defaults))
    if (fmt::format("{}.{}", x.section, x.key) == key) {
      auto text = value_text(x);
      std::erase(text, '"');
      return text;
    }
  return {};
}

std::vector<std::string> all_keys() {
  std::vector<std::string> result;
  options defaults;
  for (const auto& x : option_entries(defaults))
    result.push_back(fmt::format("{}.{}", x.section, x.key));
  return result;
}

} // namespace

void configured_call::declare(option_table& table) {
  declare_options(table);
  table.file("--conf", conf_)
    .also("--config-file")
    .says("FILE", "the configuration, in place of the one that came with the program");
  table.take_configuration(all_keys());
}

option& configured_call::key_option(option_table& table, const std::string& name, const std::string& key) {
  return table
    .value(name,
           [&table, key](const std::string& text) -> caf::error {
             table.configure_by(fmt::format("--{}={}", key, text));
             return caf::none;
           })
    .otherwise(default_of(key));
}

caf::expected<bool> configured_call::configure(const option_table& table) {
  auto args = table.for_configuration();
  if (!conf_.empty())
    args.push_back("--config-file=" + conf_);
  if (auto problem = cfg_.read(std::move(args), find_configuration()))
    return problem;
  return !cfg_.cli_helptext_printed;
}

std::string configured_call::configuration_origin() const {
  return cfg_.file() ? cfg_.file()->string() : "no file, the defaults";
}

} // namespace ringmaster
