#include "diagnosis/findings/stack_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ringmaster::diagnosis {

namespace {

/// A frame that tells what a program does: a part of its file's path or of its function's name.
struct mark {
  fault_kind kind;
  std::string_view in_file, in_function;
  std::string_view what;
};

/// The first that fits any frame counts, the outer meaning before the inner: a checkpoint that reads through a data
/// loader's worker does not exist, but a checkpoint that synchronizes a GPU does.
constexpr std::array marks{
  mark{fault_kind::in_data_loader, "dataloader", "", "in the data loader"},
  mark{fault_kind::in_data_loader, "data_loader", "", "in the data loader"},
  mark{fault_kind::in_data_loader, "torchdata/", "", "in the data loader"},
  mark{fault_kind::in_data_loader, "datasets/", "", "in the data loader"},
  mark{fault_kind::in_data_loader, "", "_next_data", "in the data loader"},
  mark{fault_kind::in_checkpoint, "checkpoint", "save", "in saving a checkpoint"},
  mark{fault_kind::in_checkpoint, "checkpoint", "load", "in loading a checkpoint"},
  mark{fault_kind::in_checkpoint, "", "save_checkpoint", "in saving a checkpoint"},
  mark{fault_kind::in_checkpoint, "", "load_checkpoint", "in loading a checkpoint"},
  mark{fault_kind::in_checkpoint, "serialization.py", "", "in saving or loading a checkpoint"},
  mark{fault_kind::in_checkpoint, "safetensors", "", "in saving or loading a checkpoint"},
  mark{fault_kind::in_checkpoint, "distributed/checkpoint", "", "in saving or loading a checkpoint"},
  mark{fault_kind::communicator_creation, "distributed_c10d", "new_group", "in the creation of a process group"},
  mark{fault_kind::communicator_creation, "distributed_c10d", "split_group", "in the creation of a process group"},
  mark{fault_kind::communicator_creation, "distributed_c10d", "_new_process_group_helper",
       "in the creation of a process group"},
  mark{fault_kind::communicator_creation, "distributed_c10d", "init_process_group",
       "in the creation of the first process group"},
  mark{fault_kind::communicator_creation, "rendezvous", "", "in the rendezvous"},
  mark{fault_kind::hung_in_kernel, "cuda/__init__", "synchronize", "waiting for its GPU"},
  mark{fault_kind::hung_in_kernel, "cuda/streams", "synchronize", "waiting for its GPU"},
  mark{fault_kind::hung_in_kernel, "", "cudaStreamSynchronize", "waiting for its GPU"},
  mark{fault_kind::hung_in_kernel, "", "cudaDeviceSynchronize", "waiting for its GPU"},
};

bool is_of_library(std::string_view file) {
  for (auto part : {"/torch/", "site-packages", "dist-packages", "/lib/python", "threading.py", "c10d_logger.py",
                    "distributed_c10d.py", "selectors.py", "queues.py", "connection.py"})
    if (file.find(part) != file.npos)
      return true;
  return file.starts_with("torch/") || file.starts_with('<');
}

} // namespace

std::optional<stack_place> place_of(const job_records& job, const rank_records& rank) {
  const thread_stack* main = nullptr;
  for (auto& thread : rank.threads)
    if (!job.stacks[thread.stack].empty() && (main == nullptr || (thread.is_main && !main->is_main)))
      main = &thread;
  if (main == nullptr)
    return {};
  auto& stack = job.stacks[main->stack];
  for (auto& mark : marks)
    for (auto& frame : stack)
      if (job.texts.text(frame.file).find(mark.in_file) != std::string_view::npos
          && job.texts.text(frame.function).find(mark.in_function) != std::string_view::npos)
        return stack_place{mark.kind, fmt::format("its main thread is {}: {}", mark.what, job.text_of(frame))};
  return stack_place{fault_kind::never_called,
                     "its main thread is in " + job.text_of(own_frames(job, stack, 1).front())};
}

call_stack own_frames(const job_records& job, const call_stack& stack, size_t count) {
  call_stack result;
  for (auto& frame : stack)
    if (result.size() < count && !is_of_library(job.texts.text(frame.file)))
      result.push_back(frame);
  if (result.empty())
    result.assign(stack.begin(), stack.begin() + static_cast<ptrdiff_t>(std::min(count, stack.size())));
  return result;
}

} // namespace ringmaster::diagnosis
