#include "tools/launch/hostfile.hpp"

#include "messages/errc.hpp"
#include "runtime/launchers/slurm_hosts.hpp"
#include "runtime/text/quantity_parse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ringmaster::launch {

namespace {

constexpr std::string_view letters_and_digits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

// Anything else could be read as an option or by a shell.
bool is_word(std::string_view text, std::string_view also_allowed) {
  return !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), [&](char c) {
    return letters_and_digits.find(c) != std::string_view::npos || also_allowed.find(c) != std::string_view::npos;
  });
}

bool is_local(std::string_view host, std::string_view own_host) {
  return host == "localhost" || host == "127.0.0.1" || host == "::1" || host == own_host;
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view blanks = " \t\r";
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  for (size_t begin = line.find_first_not_of(blanks); begin != std::string_view::npos;) {
    auto end = std::min(line.find_first_of(blanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(blanks, end);
  }
  return words;
}

/// Empty, or the sentence that says what is wrong with one `key=value`.
std::string read_setting(std::string_view setting, node_place& place) {
  auto equals = setting.find('=');
  auto key = setting.substr(0, equals);
  auto value = equals == std::string_view::npos ? std::string_view{} : setting.substr(equals + 1);
  if (value.empty() && (key == "slots" || key == "name"))
    return fmt::format("{0}= has no value: write {0}=VALUE, without blanks around the sign", key);
  if (key == "slots") {
    auto devices = parse_whole(value, 1, node_place::max_devices);
    if (!devices)
      return "slots, the number of devices: " + render(devices.error());
    place.devices = static_cast<uint32_t>(*devices);
    return {};
  }
  if (key == "name") {
    place.name = value;
    if (is_word(value, "._-"))
      return {};
    return fmt::format("a name has letters, digits, '.', '_' and '-', which '{}' is not", value);
  }
  return fmt::format("'{}' is unknown; a line is HOST [slots=DEVICES] [name=NAME]", setting);
}

/// Empty, or the sentence that says what is wrong.
std::string read_line(const std::vector<std::string_view>& words, std::vector<node_place>& places,
                      uint32_t default_devices, const std::string& own_host) {
  node_place place;
  place.host = words.front();
  place.devices = default_devices;
  place.name = fmt::format("node-{}", places.size() + 1);
  place.local = is_local(place.host, own_host);
  if (!is_word(place.host, "._-:@"))
    return fmt::format("'{}' is not the name of a host", place.host);
  for (size_t i = 1; i < words.size(); ++i) {
    if (auto wrong = read_setting(words[i], place); !wrong.empty())
      return wrong;
    const auto key = words[i].substr(0, words[i].find('=') + 1);
    if (std::any_of(words.begin() + 1, words.begin() + i, [&](auto earlier) { return earlier.starts_with(key); }))
      return fmt::format("{} is there twice", key);
  }
  if (std::any_of(places.begin(), places.end(), [&](const auto& other) { return other.name == place.name; }))
    return fmt::format("the name {} is taken by an earlier line", place.name);
  if (places.size() == max_nodes)
    return fmt::format("more than {} nodes", max_nodes);
  places.push_back(std::move(place));
  return {};
}

} // namespace

caf::expected<std::vector<node_place>> parse_hostfile(std::string_view text, const std::string& file_name,
                                                      uint32_t default_devices, const std::string& own_host) {
  std::vector<node_place> places;
  for (size_t number = 1; !text.empty(); ++number) {
    auto end = std::min(text.find('\n'), text.size());
    auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty())
      continue;
    if (auto wrong = read_line(words, places, default_devices, own_host); !wrong.empty())
      return make_error(errc::invalid_argument, fmt::format("{}:{}: {}", file_name, number, wrong));
  }
  if (places.empty())
    return make_error(errc::invalid_argument, fmt::format("{}: names no host; write one a line", file_name));
  return places;
}

caf::expected<std::vector<node_place>> slurm_places(const std::string& hosts, const std::string& tasks_per_node,
                                                    uint32_t default_devices, const std::string& own_host) {
  auto wrong = [](const char* name, const std::string& why) {
    return make_error(errc::invalid_argument, fmt::format("{}: {}", name, why));
  };
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
    return make_error(errc::invalid_argument,
                      fmt::format("--ranks {}, but the hosts have {} slots: give slots= in the hostfile, or "
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
