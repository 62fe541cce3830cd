#include "tools/options/configured_call.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/configuration/places.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

/// Without quotation marks.
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
  if (has_trust_options_) {
    key_option(table, "--secret-file", "trust.secret-file")
      .says("FILE", "the secret that all processes of the cluster share; see docs/TRUST.md")
      .otherwise(
        "RINGMASTER_SECRET_FILE, which caf-run sets; else the one that a coordinator of this user and host has "
        "made")
      .offers_files();
    key_option(table, "--certificate", "trust.certificate")
      .says("FILE", "the certificate of this host, in PEM: connections use TLS; see `ringmaster certificates`")
      .otherwise("RINGMASTER_CERTIFICATE; else connections are not encrypted")
      .offers_files();
    key_option(table, "--key", "trust.key").says("FILE", "its key").otherwise("RINGMASTER_KEY").offers_files();
    key_option(table, "--authority", "trust.authority")
      .says("FILE", "the authority that has signed the certificates of all processes")
      .otherwise("RINGMASTER_AUTHORITY")
      .offers_files();
    table.flag("--insecure", insecure_)
      .says("requires no secret: every process that can connect may use and stop the cluster");
  }
  table.file("--conf", conf_)
    .also("--config-file")
    .says("FILE", "the configuration file, instead of the installed one");
  if (has_trust_options_ && !table.has_common())
    table.uncommon({"--certificate", "--key", "--authority"});
  table.take_configuration(all_keys());
}

option& configured_call::key_option(option_table& table, const std::string& name, const std::string& key) {
  return table
    .value(name,
           [this, &table, name, key](const std::string& text) -> caf::error {
             given_options_.push_back({name, key, text});
             table.configure_by(fmt::format("--{}={}", key, text));
             return caf::none;
           })
    .otherwise(default_of(key));
}

option& configured_call::join_option(option_table& table) {
  trust_options();
  return key_option(table, "--join", "node.join")
    .says("HOST:PORT", "the cluster's coordinator")
    .otherwise("RINGMASTER_COORDINATOR");
}

void configured_call::join_options(option_table& table) {
  join_option(table)
    .says("HOST:PORT", "uses the devices of this coordinator's cluster")
    .otherwise("RINGMASTER_COORDINATOR, which caf-run sets; else the devices of this process");
  key_option(table, "--timeout", "node.join-timeout")
    .says("T", "how long to wait for its answer and for free devices, such as 30s");
}

caf::expected<bool> configured_call::configure(const option_table& table) {
  settings_ = table.for_configuration();
  if (insecure_)
    settings_.push_back("--trust.insecure=true");
  auto args = settings_;
  if (!conf_.empty())
    args.push_back("--config-file=" + conf_);
  if (auto problem = cfg_.read(std::move(args), find_configuration()))
    return as_typed(problem);
  RETURN_ERROR(cfg_.check_remainder());
  return !cfg_.cli_helptext_printed;
}

caf::error configured_call::as_typed(const caf::error& problem) const {
  constexpr std::string_view middle = "; it must be ", unless = ", or empty";
  const auto text = render(problem);
  for (auto& x : given_options_) {
    const auto at = text.find(middle);
    if (at == text.npos
        || !(text.starts_with(fmt::format("--{}={}: ", x.key, x.value)) || text.starts_with(x.key + " is ")))
      continue;
    auto right = text.substr(at + middle.size());
    if (right.ends_with(unless)) // an empty value means that the option is omitted
      right.resize(right.size() - unless.size());
    return make_error(code_of(problem), fmt::format("{}: \"{}\" is not {}", x.name, x.value, right));
  }
  return problem;
}

std::vector<std::string> configured_call::values_given(const std::string& key) const {
  const auto start = "--" + key + "=";
  std::vector<std::string> result;
  for (auto& x : settings_)
    if (x.starts_with(start))
      result.push_back(x.substr(start.size()));
  return result;
}

std::string configured_call::configuration_origin() const {
  return cfg_.file() ? cfg_.file()->string() : "no file, the defaults";
}

} // namespace ringmaster
