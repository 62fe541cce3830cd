#include "tools/launch/hostfile.hpp"

#include "messages/errc.hpp"
#include "runtime/launchers/slurm_hosts.hpp"
#include "runtime/text/endpoint.hpp"
#include "runtime/text/own_address.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

namespace ringmaster::launch {

namespace {

constexpr std::string_view letters_and_digits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

// For refusals of what is none of these.
constexpr std::string_view accepted_forms
  = "a line is HOST, HOST slots=DEVICES, HOST:DEVICES, n[1-4]:DEVICES or several of these with commas; HOST may be "
    "USER@HOST; after it max_slots=, user= and name= may follow";

// Anything else could be read as an option or by a shell.
bool is_word(std::string_view text, std::string_view also_allowed) {
  return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), [&](char c) {
    return letters_and_digits.find(c) != std::string_view::npos || also_allowed.find(c) != std::string_view::npos;
  });
}

bool is_local(const std::string& host, std::string_view own_host) {
  return host == own_host || is_loopback(host) || is_own_address(host);
}

/// Up to a comment, as ours and Open MPI's.
std::string_view without_comment(std::string_view line) {
  return line.substr(0, std::min(line.find('#'), line.find("//")));
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view blanks = " \t\r";
  std::vector<std::string_view> words;
  line = without_comment(line);
  for (size_t begin = line.find_first_not_of(blanks); begin != std::string_view::npos;) {
    auto end = std::min(line.find_first_of(blanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(blanks, end);
  }
  return words;
}

/// What a line says of its hosts.
struct line_settings {
  std::optional<uint32_t> slots{}, max_slots{};
  std::string name{};
  std::string user{};
};

/// Known to several launchers under several names.
struct setting_names {
  const char* key;
  std::vector<std::string_view> also;
};
const setting_names known_settings[] = {
  {"slots", {}},
  {"max_slots", {"max-slots", "slots_max", "slots-max"}}, // Open MPI
  {"name", {}},
  {"user", {"username", "user_name"}}, // MPICH, Open MPI
};

/// Null where there is none.
const char* known_setting(std::string_view key) {
  for (auto& x : known_settings)
    if (key == x.key || std::ranges::find(x.also, key) != x.also.end())
      return x.key;
  return nullptr;
}

/// Empty, or the sentence that says what is wrong.
std::string read_slots(std::string_view value, std::optional<uint32_t>& slots) {
  auto number = parse_whole(value, 1, node_place::max_devices);
  if (!number)
    return "slots, the number of devices: " + render(number.error());
  slots = static_cast<uint32_t>(*number);
  return {};
}

/// Empty, or the sentence that says what is wrong with one `key=value`.
std::string read_setting(std::string_view setting, line_settings& result) {
  const auto equals = setting.find('=');
  const auto* known = known_setting(setting.substr(0, equals));
  if (known == nullptr)
    return fmt::format("'{}' is unknown; {}", setting, accepted_forms);
  const std::string_view key{known};
  const auto value = equals == std::string_view::npos ? std::string_view{} : setting.substr(equals + 1);
  if (value.empty())
    return fmt::format("{0}= has no value: write {0}=VALUE, without blanks around the sign", setting.substr(0, equals));
  if (key == "slots")
    return read_slots(value, result.slots);
  if (key == "max_slots") {
    auto number = parse_whole(value, 1, UINT32_MAX);
    if (!number)
      return fmt::format("{}, the most slots: {}", setting.substr(0, equals), render(number.error()));
    result.max_slots = static_cast<uint32_t>(*number);
    return {};
  }
  (key == "name" ? result.name : result.user) = value;
  return is_word(value, "._-")
           ? std::string{}
           : fmt::format("a {} has letters, digits, '.', '_' and '-', which '{}' is not", key, value);
}

/// Hosts as one word of a line says: "beta", "beta:4", "user@beta", "n[01-04]:2", "[fd00::7]:2".
struct host_word {
  std::vector<std::string> hosts{};
  std::optional<uint32_t> slots{};
};

/// Without brackets around an IPv6 address; others are ranges.
std::string host_of(std::string_view text) {
  auto inner = without_brackets(text);
  return is_ipv6_address(inner) ? inner : std::string{text};
}

/// What stands before and after the colon of "beta:4"; an IPv6 address has colons of its own, and brackets where slots
/// follow. Empty, or the sentence that says what is wrong.
std::string split_slots(std::string_view word, std::string& host, std::optional<uint32_t>& slots) {
  const auto close = word.rfind(']');
  const auto after = close == std::string_view::npos ? 0 : close + 1;
  const auto colon = word.find(':', after);
  if (is_ipv6_address(word) || colon == std::string_view::npos) {
    host = host_of(word);
    return {};
  }
  host = host_of(word.substr(0, colon));
  const auto number = word.substr(colon + 1);
  if (number.empty() || number.find(':') != std::string_view::npos)
    return fmt::format("'{}' is neither a host nor HOST:DEVICES; {}", word, accepted_forms);
  if (auto wrong = read_slots(number, slots); !wrong.empty())
    return fmt::format("{}; '{}' is HOST:SLOTS, and a port of ssh belongs into ~/.ssh/config", wrong, word);
  return {};
}

/// Empty, or the sentence that says what is wrong.
std::string read_host(std::string_view word, host_word& result) {
  const auto at = word.find('@') + 1; // npos + 1 is 0
  const auto user = word.substr(0, at);
  std::string host;
  if (auto wrong = split_slots(word.substr(at), host, result.slots); !wrong.empty())
    return wrong;
  if (is_ipv6_address(host) || host.find_first_of("[,") == std::string::npos) {
    result.hosts = {host};
  } else {
    auto several = slurm_hosts(host);
    if (!several)
      return render(several.error());
    if (several->size() > max_nodes)
      return fmt::format("more than {} nodes", max_nodes);
    result.hosts = std::move(*several);
  }
  for (auto& each : result.hosts) {
    if (!is_word(each, is_ipv6_address(each) ? "._-:%" : "._-"))
      return fmt::format("'{}' is not the name of a host; {}", each, accepted_forms);
    each.insert(0, user);
  }
  if (!user.empty() && !is_word(user.substr(0, user.size() - 1), "._-"))
    return fmt::format("'{}' is not the name of a host; {}", word, accepted_forms);
  return {};
}

/// The words of "a:2,b[1-3,7]:4", which horovodrun and Intel's -hosts take.
std::vector<std::string_view> comma_separated(std::string_view word) {
  std::vector<std::string_view> result;
  bool within = false;
  size_t begin = 0;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '[' || word[i] == ']')
      within = word[i] == '[';
    if (word[i] == ',' && !within) {
      result.push_back(word.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  result.push_back(word.substr(begin));
  return result;
}

/// Empty, or the sentence that says what is wrong.
std::string read_settings(const std::vector<std::string_view>& words, line_settings& result) {
  std::vector<std::string_view> seen;
  for (size_t i = 1; i < words.size(); ++i) {
    if (auto wrong = read_setting(words[i], result); !wrong.empty())
      return wrong;
    const std::string_view key{known_setting(words[i].substr(0, words[i].find('=')))};
    if (std::ranges::find(seen, key) != seen.end())
      return fmt::format("{}= is there twice", key);
    seen.push_back(key);
  }
  return {};
}

/// Adds one node. Empty, or the sentence that says what is wrong.
std::string add_place(std::string host, const line_settings& said, std::vector<node_place>& places,
                      uint32_t default_devices, const std::string& own_host) {
  node_place place;
  place.host = said.user.empty() ? std::move(host) : said.user + "@" + host;
  place.local = is_local(place.host, own_host); // another user counts as another host, also here
  place.devices = said.slots.value_or(std::min(default_devices, said.max_slots.value_or(default_devices)));
  place.name = said.name.empty() ? fmt::format("node-{}", places.size() + 1) : said.name;
  if (place.devices > said.max_slots.value_or(place.devices))
    return fmt::format("slots={} are more than max_slots={}", place.devices, *said.max_slots);
  if (std::ranges::any_of(places, [&](const auto& other) { return other.name == place.name; }))
    return fmt::format("the name {} is taken by an earlier line", place.name);
  if (places.size() == max_nodes)
    return fmt::format("more than {} nodes", max_nodes);
  places.push_back(std::move(place));
  return {};
}

/// Empty, or the sentence that says what is wrong.
std::string read_line(const std::vector<std::string_view>& words, std::vector<node_place>& places,
                      uint32_t default_devices, const std::string& own_host) {
  line_settings said;
  if (auto wrong = read_settings(words, said); !wrong.empty())
    return wrong;
  const auto entries = comma_separated(words.front());
  for (auto entry : entries) {
    host_word read;
    if (auto wrong = read_host(entry, read); !wrong.empty())
      return wrong;
    if (read.slots && said.slots)
      return fmt::format("'{}' has slots already: leave slots={} out", entry, *said.slots);
    if (!said.name.empty() && (entries.size() > 1 || read.hosts.size() > 1))
      return fmt::format("name={} is one name, and '{}' are several hosts", said.name, words.front());
    auto its = said;
    its.slots = read.slots ? read.slots : said.slots;
    for (auto& host : read.hosts)
      if (auto wrong = add_place(std::move(host), its, places, default_devices, own_host); !wrong.empty())
        return wrong;
  }
  return {};
}

} // namespace

caf::expected<std::vector<node_place>> parse_hostfile(std::string_view text, const std::string& file_name,
                                                      uint32_t default_devices, const std::string& own_host) {
  std::vector<node_place> places;
  if (const auto wrong = wide_encoding_problem(text))
    return invalid(fmt::format("{}: {}", file_name, render(wrong)));
  text = without_byte_order_mark(text);
  for (size_t number = 1; !text.empty(); ++number) {
    auto end = std::min(text.find('\n'), text.size());
    auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty())
      continue;
    if (auto wrong = read_line(words, places, default_devices, own_host); !wrong.empty())
      return invalid(fmt::format("{}:{}: {}", file_name, number, wrong));
  }
  if (places.empty())
    return invalid(fmt::format("{}: names no host; write one a line", file_name));
  return places;
}

caf::expected<std::vector<node_place>> read_hostfile(const std::string& file, uint32_t default_devices) {
  std::ifstream in{file};
  std::ostringstream text;
  if (!in || !(text << in.rdbuf()))
    return make_error(errc::io_error, fmt::format("cannot read the hostfile {}, or it is empty", file));
  return parse_hostfile(text.str(), file, default_devices, own_host_name());
}

caf::expected<std::vector<node_place>> slurm_places(const std::string& hosts, const std::string& tasks_per_node,
                                                    uint32_t default_devices, const std::string& own_host) {
  auto wrong = [](const char* name, const std::string& why) { return invalid(fmt::format("{}: {}", name, why)); };
  auto names = slurm_hosts(hosts);
  if (!names)
    return wrong("SLURM_JOB_NODELIST", render(names.error()));
  if (names->size() > max_nodes)
    return wrong("SLURM_JOB_NODELIST", fmt::format("more than {} nodes", max_nodes));
  std::vector<uint32_t> tasks(names->size(), default_devices);
  if (!tasks_per_node.empty()) {
    auto given = slurm_tasks(tasks_per_node);
    if (!given)
      return wrong("SLURM_TASKS_PER_NODE", render(given.error()));
    if (given->size() != names->size())
      return wrong("SLURM_TASKS_PER_NODE",
                   fmt::format("\"{}\" is for {} hosts, and SLURM_JOB_NODELIST names {}: \"{}\"", tasks_per_node,
                               given->size(), names->size(), hosts));
    tasks = std::move(*given);
  }
  std::vector<node_place> places;
  for (size_t i = 0; i < names->size(); ++i) {
    auto& host = (*names)[i];
    if (!is_word(host, "._-"))
      return wrong("SLURM_JOB_NODELIST", fmt::format("'{}' is not the name of a host", host));
    if (tasks[i] == 0 || tasks[i] > node_place::max_devices)
      return wrong("SLURM_TASKS_PER_NODE",
                   fmt::format("{} tasks are not from 1 to {}", tasks[i], node_place::max_devices));
    bool is_local_one = is_local(host, own_host) || is_local(host, own_host.substr(0, own_host.find('.')));
    places.push_back({host, fmt::format("node-{}", i + 1), tasks[i], is_local_one});
  }
  return places;
}

caf::expected<std::vector<rank_place>> rank_places(uint32_t ranks, const std::vector<node_place>& hosts) {
  std::vector<rank_place> places;
  std::map<std::string, uint32_t> on_host;
  uint64_t slots = 0;
  for (auto& x : hosts) {
    slots += x.devices;
    auto& here = on_host[x.local ? std::string{} : x.host];
    for (uint32_t i = 0; i < x.devices && places.size() < ranks; ++i)
      places.push_back({static_cast<uint32_t>(places.size()), here++, x.host, x.local});
  }
  if (places.size() < ranks)
    return invalid(fmt::format("--ranks {}, but the hosts have {} slots: give slots= in the hostfile, or "
                               "--devices-per-node; in an allocation of SLURM's, --ntasks-per-node",
                               ranks, slots));
  return places;
}

std::string place_text(const rank_place& x) {
  return x.local ? fmt::format("rank {}", x.rank) : fmt::format("rank {} on {}", x.rank, x.host);
}

std::vector<rank_place> local_ranks(uint32_t ranks) {
  std::vector<rank_place> places;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    places.push_back({rank, rank, "localhost", true});
  return places;
}

std::vector<node_place> local_places(uint32_t count, uint32_t devices) {
  std::vector<node_place> places;
  for (uint32_t i = 1; i <= count; ++i)
    places.push_back({"localhost", fmt::format("node-{}", i), devices, true});
  return places;
}

} // namespace ringmaster::launch
