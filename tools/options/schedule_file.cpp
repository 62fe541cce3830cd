#include "tools/options/schedule_file.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/proof/proof.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ringmaster {

namespace {

caf::error check_agreement(const collective_options& asked, const schedule_set& written, const char* ranks_option) {
  const auto& file = asked.schedule;
  const auto& own = written.request;
  auto differ = [&](const char* option, const auto& given, const auto& of_file) {
    return invalid(fmt::format("{} {}: --schedule {} says {}", option, given, file, of_file));
  };
  if (asked.kind && *asked.kind != written.kind)
    return invalid(fmt::format("{} was asked for, but --schedule {} has {}", name_of(*asked.kind), file,
                               name_of(written.kind)));
  if (!asked.algorithm.empty())
    return invalid(fmt::format("--algorithm {}: --schedule {} says itself who does what", asked.algorithm, file));
  if (auto chunk = asked.chunk ? asked.chunk : asked.chunk_bytes)
    return invalid(fmt::format("--chunk {}: --schedule {} says itself who does what", *chunk, file));
  if (asked.ranks && *asked.ranks != own.world_size)
    return differ(ranks_option, *asked.ranks, own.world_size);
  if (asked.root)
    RETURN_ERROR(check_has_root(written.kind));
  if (asked.root && *asked.root != own.root)
    return differ("--root", *asked.root, own.root);
  if (asked.peer)
    RETURN_ERROR(check_has_peer(written.kind));
  if (asked.peer && *asked.peer != own.peer)
    return differ("--peer", *asked.peer, own.peer);
  if (asked.count && (*asked.count != own.count || !own.counts.empty()))
    return differ("--count", *asked.count, own.counts.empty() ? fmt::to_string(own.count) : "one for each rank");
  return caf::none;
}

} // namespace

option& add_schedule_option(option_table& table, std::string& file) {
  return table.file("--schedule", file)
    .says("FILE", "the schedules in FILE, in place of an algorithm's; docs/schedule_format.md has the format. Kind, "
                  "world size, root and peer are the file's, and the number of elements is, or a multiple of it, with "
                  "every range scaled by the same factor. What `ringmaster prove --schedule FILE` refuses is not run");
}

caf::expected<schedule_set> read_schedule_file(const std::string& file) {
  if (std::error_code ignored; std::filesystem::is_directory(file, ignored))
    return malformed(fmt::format("{}: it is a directory, not a file of schedules", file));
  std::ifstream in{file, std::ios::binary};
  std::stringstream text;
  if (in && in.peek() == std::ifstream::traits_type::eof())
    return malformed(fmt::format("{}: the file is empty; docs/schedule_format.md has the format", file));
  if (!in || !(text << in.rdbuf()))
    return make_error(errc::io_error, fmt::format("cannot read '{}': {}", file, std::strerror(errno)));
  auto result = parse_schedules(text.str());
  if (!result)
    return malformed(fmt::format("{}: {}", file, render(result.error())));
  return result;
}

caf::error check_proof(const std::string& file, const schedule_set& written) {
  const auto fault = prove(written.kind, written.request, written.ranks).fault;
  return fault ? malformed(fmt::format("{}: the proof does not hold: {}", file, render(fault))) : caf::error{};
}

caf::expected<schedule_set> schedules_for(const collective_options& asked, const char* ranks_option) {
  auto written = read_schedule_file(asked.schedule);
  if (written)
    RETURN_ERROR(check_agreement(asked, *written, ranks_option));
  return written;
}

caf::expected<uint64_t> factor_for(const char* option, uint64_t bytes, const collective_options& asked,
                                   const schedule_set& written) {
  TRY(elements, whole_elements(option, bytes, asked.datatype));
  auto own = size_count(written.kind, written.request);
  if (own == 0 && *elements == 0)
    return uint64_t{1};
  if (own == 0 || *elements == 0 || *elements % own != 0)
    return invalid(fmt::format("{} {}: --schedule {} is for {} of {}, {}, or a multiple of it", option, bytes,
                               asked.schedule, counted(own, "element"), name_of(asked.datatype),
                               counted(own * size_of(asked.datatype), "byte")));
  return *elements / own;
}

std::string algorithm_name_of(const std::string& file) {
  auto name = std::filesystem::path{file}.filename().string();
  std::replace_if(
    name.begin(), name.end(), [](char x) { return x <= ' ' || x > '~' || x == '"' || x == '\\'; }, '_');
  return "file:" + name;
}

} // namespace ringmaster
