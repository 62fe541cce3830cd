#include "gateway/dialects/listener_file.hpp"

#include "messages/errc.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/text/comma_list.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/text_file.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <set>

namespace ringmaster::gateway {

namespace {

using setter = std::function<caf::error(listener_options&, std::string_view)>;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto begin = text.find_first_not_of(blanks);
  return begin == std::string_view::npos ? std::string_view{}
                                         : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> result;
  for (auto x : comma_list(text))
    result.emplace_back(trimmed(x));
  return result;
}

/// Stores a parsed value.
template <class Target, class Value>
caf::error store(Target& target, const caf::expected<Value>& value) {
  if (!value)
    return value.error();
  target = static_cast<Target>(*value);
  return caf::none;
}

/// One of a few words, each with its value.
template <class Value>
setter word(Value dialect::*target, std::vector<std::pair<std::string, Value>> words) {
  return [=](listener_options& x, std::string_view text) -> caf::error {
    std::vector<std::string> allowed;
    for (auto& [name, value] : words) {
      if (name == text) {
        x.form.*target = value;
        return caf::none;
      }
      allowed.push_back(name);
    }
    return invalid(fmt::format("\"{}\" is not {}", text, choice_text(allowed)));
  };
}

setter limit(caf::timespan dialect::*target) {
  return [=](listener_options& x, std::string_view text) -> caf::error {
    auto ps = parse_duration_ps(text);
    if (!ps)
      return std::move(ps.error());
    constexpr int64_t ps_per_ns = 1000;
    if (*ps < ps_per_ns)
      return invalid(fmt::format("\"{}\" is no time of more than 0, such as 30s", text));
    x.form.*target = std::chrono::nanoseconds{*ps / ps_per_ns};
    return caf::none;
  };
}

/// "0x1000 1MiB"
caf::error set_window(listener_options& x, std::string_view text) {
  const auto blank = text.find_first_of(" \t");
  if (blank == std::string_view::npos)
    return invalid(fmt::format("\"{}\" is no window, such as \"0x1000 1M\": the first address, and the size", text));
  dialect::window result;
  constexpr uint64_t most = 1ull << 62;
  if (auto problem = store(result.base, parse_whole(text.substr(0, blank), 0, most)))
    return problem;
  if (auto problem = store(result.bytes, parse_bytes(trimmed(text.substr(blank)), most, 1)))
    return problem;
  x.form.addresses = result;
  return caf::none;
}

caf::error set_devices(listener_options& x, std::string_view text) {
  for (auto& word : words_of(text)) {
    auto address = parse_listening_address(word);
    if (!address)
      return std::move(address.error());
    x.devices.push_back(*address);
  }
  return caf::none;
}

const std::map<std::string, setter, std::less<>>& keys() {
  using form = dialect;
  static const std::map<std::string, setter, std::less<>> result{
    {"address", [](auto& x, auto text) { return store(x.address, parse_listening_address(text)); }},
    {"call-limit", limit(&form::call_limit)},
    {"calls-max", [](auto& x, auto text) { return store(x.form.calls_max, parse_whole(text, 1, UINT32_MAX)); }},
    {"chunk", word(&form::chunk, {{"field", form::chunk_name::field}, {"header", form::chunk_name::header}})},
    {"count", word(&form::count, {{"elements", form::count_unit::elements}, {"bytes", form::count_unit::bytes}})},
    {"datatype", [](auto& x, auto text) { return store(x.form.datatype, parse_datatype(text)); }},
    {"device-ids",
     [](auto& x, auto text) -> caf::error {
       if (text == "cluster") {
         x.form.first_device_id.reset();
         return caf::none;
       }
       return store(x.form.first_device_id, parse_whole(text, 0, UINT32_MAX));
     }},
    {"devices", set_devices},
    {"first-status",
     [](auto& x, auto text) {
       x.form.first_status = text;
       return caf::error{};
     }},
    {"idle-limit", limit(&form::idle_limit)},
    {"message-max",
     [](auto& x, auto text) { return store(x.form.message_bytes_max, parse_bytes(text, 1ull << 30, 1024)); }},
    {"on-loss", word(&form::on_loss, {{"configured", form::loss_policy::as_configured},
                                      {"shrink", form::loss_policy::shrink},
                                      {"replace", form::loss_policy::replace},
                                      {"abort", form::loss_policy::abort}})},
    {"on-shortage", word(&form::on_shortage, {{"share", form::shortage::share}, {"refuse", form::shortage::refuse}})},
    {"peer", word(&form::peer, {{"rank", form::peer_name::rank}, {"device", form::peer_name::device}})},
    {"reduce-op",
     [](auto& x, auto text) {
       x.form.reduce_ops = words_of(text);
       return caf::error{};
     }},
    {"send-op", word(&form::send_op, {{"ignored", form::send_op_use::ignored},
                                      {"applied", form::send_op_use::applied}})},
    {"status",
     [](auto& x, auto text) {
       x.form.statuses = words_of(text);
       return caf::error{};
     }},
    {"window", set_window},
  };
  return result;
}

caf::error unknown_key(std::string_view key) {
  std::vector<std::string> all;
  for (auto& [name, set] : keys())
    all.push_back(name);
  auto meant = nearest_word(key, all);
  return invalid(meant.empty() ? fmt::format("there is no key \"{}\"; the keys are {}", key, choice_text(all))
                               : fmt::format("there is no key \"{}\"; did you mean \"{}\"?", key, meant));
}

/// Builds the listeners line by line.
class listener_reader {
public:
  caf::error take(std::string_view line) {
    line = trimmed(line.substr(0, line.find_first_of(";#")));
    if (line.empty())
      return caf::none;
    if (line.front() == '[')
      return begin_section(line);
    const auto equals = line.find('=');
    if (equals == std::string_view::npos)
      return invalid(fmt::format("\"{}\" is neither [NAME] nor KEY = VALUE", line));
    return set(trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
  }

  /// Checks the latest section.
  caf::error finish_section() const {
    if (done_.empty())
      return caf::none;
    auto& x = done_.back();
    if (keys_.count("address") == 0)
      return invalid(fmt::format("the listener [{}] has no address: address = 127.0.0.1:50051", x.name));
    return with_context(fmt::format("the listener [{}]", x.name), x.form.check());
  }

  std::vector<listener_options> take_all() { return std::move(done_); }

private:
  caf::error begin_section(std::string_view line) {
    if (line.back() != ']' || trimmed(line.substr(1, line.size() - 2)).empty())
      return invalid(fmt::format("\"{}\" is no section: [NAME]", line));
    if (auto problem = finish_section())
      return problem;
    const auto name = std::string{trimmed(line.substr(1, line.size() - 2))};
    if (!names_.insert(name).second)
      return invalid(fmt::format("there are two listeners [{}]", name));
    done_.emplace_back().name = name;
    keys_.clear();
    return caf::none;
  }

  caf::error set(std::string_view key, std::string_view value) {
    if (done_.empty())
      return invalid(fmt::format("\"{}\" stands before the first section: [NAME]", key));
    auto i = keys().find(key);
    if (i == keys().end())
      return unknown_key(key);
    if (!keys_.insert(std::string{key}).second)
      return invalid(fmt::format("the listener [{}] has the key \"{}\" twice", done_.back().name, key));
    if (value.empty())
      return invalid(fmt::format("\"{}\" has no value", key));
    return with_context(std::string{key}, i->second(done_.back(), value));
  }

  std::vector<listener_options> done_;
  std::set<std::string> names_, keys_; ///< Of the listeners; of the latest one.
};

} // namespace

caf::expected<endpoint> parse_listening_address(std::string_view text) {
  constexpr std::string_view any = ":0";
  if (!text.ends_with(any))
    return parse_endpoint(text);
  auto result = parse_endpoint(fmt::format("{}:1", text.substr(0, text.size() - any.size())));
  if (result)
    result->port = 0;
  return result;
}

caf::expected<std::vector<listener_options>> parse_listeners(std::string_view text) {
  listener_reader reader;
  size_t number = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    ++number;
    if (auto problem = reader.take(text.substr(begin, end - begin)))
      return with_context(fmt::format("line {}", number), problem);
    begin = end + 1;
  }
  if (auto problem = reader.finish_section())
    return problem;
  auto result = reader.take_all();
  if (result.empty())
    return invalid("there is no listener: a section [NAME] with address = HOST:PORT");
  return result;
}

caf::expected<std::vector<listener_options>> listeners_of(const std::string& file_or_address) {
  const auto address = parse_listening_address(file_or_address);
  std::error_code ignored;
  if (address && !std::filesystem::exists(file_or_address, ignored)) {
    listener_options lab;
    lab.address = *address;
    return std::vector<listener_options>{std::move(lab)};
  }
  return parse_file(file_or_address, [](const std::string& text) { return parse_listeners(text); });
}

} // namespace ringmaster::gateway
