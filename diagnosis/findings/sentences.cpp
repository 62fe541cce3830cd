// Answers as text.
#include "diagnosis/findings/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ringmaster::diagnosis {

std::string_view name_of(fault_kind x) {
  switch (x) {
    case fault_kind::none: return "none";
    case fault_kind::never_called: return "never_called";
    case fault_kind::other_collective: return "other_collective";
    case fault_kind::other_size: return "other_size";
    case fault_kind::other_datatype: return "other_datatype";
    case fault_kind::other_root: return "other_root";
    case fault_kind::other_order: return "other_order";
    case fault_kind::other_group: return "other_group";
    case fault_kind::slow: return "slow";
    case fault_kind::died: return "died";
    case fault_kind::hung_in_kernel: return "hung_in_kernel";
    case fault_kind::in_data_loader: return "in_data_loader";
    case fault_kind::in_checkpoint: return "in_checkpoint";
    case fault_kind::communicator_creation: return "communicator_creation";
    case fault_kind::no_partner: return "no_partner";
  }
  return {};
}

std::string_view name_of(certainty x) {
  switch (x) {
    case certainty::certain: return "certain";
    case certainty::likely: return "likely";
    case certainty::ambiguous: return "ambiguous";
  }
  return {};
}

std::string ranks_with_hosts(const job_records& job, const std::vector<uint32_t>& ranks) {
  std::map<std::string, std::vector<uint32_t>> by_host;
  for (auto rank : ranks) {
    auto* records = job.find(rank);
    by_host[records == nullptr ? std::string{} : records->host].push_back(rank);
  }
  constexpr size_t hosts_max = 4;
  if (by_host.size() > hosts_max)
    return fmt::format("{} on {} hosts", ranks_text(ranks), by_host.size());
  std::string result;
  for (auto& [host, its] : by_host)
    result += fmt::format("{}{}{}", result.empty() ? "" : ", ", ranks_text(its), host.empty() ? "" : " on " + host);
  return result;
}

namespace {

std::string capital(std::string text) {
  if (!text.empty())
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

std::string sizes_and_type(const job_records& job, const rank_call& x) {
  auto& shape = job.shapes[x.shape];
  return fmt::format("{} {}", job.texts.text(shape.input_sizes), job.texts.text(shape.input_types));
}

/// "called all_gather 17 of "dp" where the others called all_reduce"
std::string deed_of(const job_records& job, const cause& x) {
  const bool several = x.ranks.size() > 1;
  const auto awaited = x.has_call ? job.name_of_call(x.awaited) : std::string{"the creation of a communicator"};
  const auto own = x.has_made ? job.name_of_call(x.made) : std::string{};
  switch (x.kind) {
    case fault_kind::none: return "";
    case fault_kind::never_called: return (several ? "have not called " : "has not called ") + awaited;
    case fault_kind::other_collective: return fmt::format("called {} where the others called {}", own, awaited);
    case fault_kind::other_size:
    case fault_kind::other_datatype:
      return fmt::format("called {} with {}, the others with {}", awaited,
                         x.has_made ? sizes_and_type(job, x.made) : "another size", sizes_and_type(job, x.awaited));
    case fault_kind::other_root:
      return fmt::format("called {} with root {}, the others with root {}", awaited, x.made.root, x.awaited.root);
    case fault_kind::other_order:
      return x.has_made ? fmt::format("called {} before {}, the others in the other order", own, awaited)
                        : fmt::format("called {} in another order than the others", awaited);
    case fault_kind::other_group: return fmt::format("called {} in place of {}", own, awaited);
    case fault_kind::slow: return fmt::format("{} slow to come to {}", several ? "are" : "is", awaited);
    case fault_kind::died:
      return fmt::format("{} before {}",
                         x.sure == certainty::certain ? "died"
                         : several                    ? "left no record and have probably died"
                                                      : "left no record and has probably died",
                         awaited);
    case fault_kind::hung_in_kernel: return fmt::format("{} on the GPU at {}", several ? "hang" : "hangs", awaited);
    case fault_kind::in_data_loader:
      return fmt::format("{} in the data loader and {} not called {}", several ? "are" : "is", several ? "have" : "has",
                         awaited);
    case fault_kind::in_checkpoint:
      return fmt::format("{} in a checkpoint and {} not called {}", several ? "are" : "is", several ? "have" : "has",
                         awaited);
    case fault_kind::communicator_creation: return (several ? "have not joined " : "has not joined ") + awaited;
    case fault_kind::no_partner:
      return fmt::format("{} not called the counterpart of {}", several ? "have" : "has", awaited);
  }
  return {};
}

} // namespace

std::string sentence_of(const job_records& job, const cause& x) {
  if (x.kind == fault_kind::none)
    return "No rank waits for another one: the records show no hang.";
  auto result = capital(ranks_with_hosts(job, x.ranks)) + " " + deed_of(job, x);
  if (x.sure == certainty::ambiguous)
    result = "Ambiguous: one or more of " + ranks_with_hosts(job, x.ranks) + " " + deed_of(job, x);
  if (x.waiting != 0)
    result += fmt::format("; {} for it", x.waiting == 1 ? "1 rank waits" : fmt::format("{} ranks wait", x.waiting));
  if (x.awaited.created_ns != 0)
    result += " since " + time_text(x.awaited.created_ns);
  if (!x.place.empty())
    result += "; " + x.place;
  return result + ".";
}

} // namespace ringmaster::diagnosis
