#pragma once

#include <ringmaster/cluster.hpp>
#include <ringmaster/collectives.hpp>
#include <ringmaster/communicator.hpp>
#include <ringmaster/memory.hpp>
#include <ringmaster/work.hpp>

#include <optional>

namespace RINGMASTER_API {

/// A rank's buffers, as addresses on its device. In place it has one, as large as the larger of its input and output.
struct rank_buffers {
  uint64_t input = 0;    ///< 0 where the rank has none.
  uint64_t output = 0;   ///< 0 where the rank has none.
  bool in_place = false; ///< The result replaces the input.

  /// One buffer, in place.
  static rank_buffers at(const device_memory& memory) { return {memory.address(), 0, true}; }
};

/// Options of a rank's call.
struct call_options {
  std::string algorithm = "auto";      ///< "ring", "tree", ...; "auto" is the one estimated to be fastest.
  uint64_t chunk = 0;                  ///< Pipelined algorithms: elements of a piece; 0: chosen by the library.
  std::chrono::nanoseconds timeout{0}; ///< Limit for all ranks; 0: the communicator's.
};

/// A communicator as one of its ranks calls it: NCCL's ncclComm_t, MPI's communicator. The k-th collective of a rank
/// matches the k-th of every other rank. Calls return at once; `work` has their result. The calls of all ranks are
/// compared before a byte moves: a mismatch fails on every rank, with ranks and values, and leaves buffers unchanged.
/// Counts are in elements. One thread at a time for each handle. The handle must be destroyed before its cluster.
class rank_communicator {
public:
  /// The handle of a rank of a communicator. Errors: unknown_communicator, invalid_argument, timed_out, device_lost.
  static expected<rank_communicator> attach(const cluster& home, communicator_id communicator, uint32_t rank);
  rank_communicator(rank_communicator&&) noexcept;
  rank_communicator& operator=(rank_communicator&&) noexcept;
  ~rank_communicator();

  communicator_id id() const; ///< Never used twice.
  uint32_t rank() const;      ///< Of this handle, in its epoch.
  uint32_t size() const;      ///< Ranks, in its epoch.
  epoch_number epoch() const; ///< That rank and size are of.
  device_id device() const;   ///< This rank's device.

  /// Allocates elements of T on the rank's device. Errors: out_of_memory, device_lost.
  template <class T>
  expected<device_memory> allocate(uint64_t count) {
    return allocate_bytes(count * sizeof(T));
  }
  /// The same in bytes.
  expected<device_memory> allocate_bytes(uint64_t bytes);

  /// Reduces the inputs; the result is on every rank.
  work all_reduce(const rank_buffers& buffers, uint64_t count, datatype type, const reduction& how = {},
                  const call_options& options = {});
  /// Reduces the inputs; the result is on the root.
  work reduce(const rank_buffers& buffers, uint64_t count, datatype type, uint32_t root, const reduction& how = {},
              const call_options& options = {});
  /// Copies the root's input to every rank.
  work broadcast(const rank_buffers& buffers, uint64_t count, datatype type, uint32_t root,
                 const call_options& options = {});
  /// Concatenates the inputs in rank order. `count`: of one rank's block, here and below.
  work all_gather(const rank_buffers& buffers, uint64_t count, datatype type, const call_options& options = {});
  /// Reduces the inputs; rank r gets block r.
  work reduce_scatter(const rank_buffers& buffers, uint64_t count, datatype type, const reduction& how = {},
                      const call_options& options = {});
  /// Sends block r to rank r.
  work all_to_all(const rank_buffers& buffers, uint64_t count, datatype type, const call_options& options = {});
  /// Finishes when all ranks have called it.
  work barrier(const call_options& options = {});
  /// Sends to a rank. The k-th send matches that rank's k-th receive from this one.
  work send(uint64_t address, uint64_t count, datatype type, uint32_t to, const call_options& options = {});
  /// Receives from a rank.
  work receive(uint64_t address, uint64_t count, datatype type, uint32_t from, const call_options& options = {});

  /// Calls from here until `group_end` are made together, in any order of ranks (ncclGroupStart).
  void group_start();
  work group_end(); ///< Makes the calls; finishes when all of them have.

  /// A communicator of the ranks of equal colour, in the order of keys, then ranks; none for a colour below 0. Every
  /// rank calls it and waits for the others (MPI_Comm_split).
  expected<std::optional<rank_communicator>> split(int32_t color, int64_t key = 0);
  /// Destroys the communicator for all ranks. One rank calls it, after its last operation.
  expected<void> destroy();
  /// State of the communicator, with the latest verdicts: which rank was the cause of a failure, the same for all ranks.
  /// One rank may call it alone. Errors: device_lost where the coordinator has exited, unknown_communicator.
  expected<communicator_status> status();
  /// Rank, size and epoch of now, after a loss. All ranks call it between the same two calls. Errors: device_lost where
  /// this rank is no longer a member.
  expected<void> update();

  struct state;                                               ///< Internal.
  explicit rank_communicator(std::unique_ptr<state> content); ///< Internal.
  state& internals() { return *state_; }                      ///< Internal.

private:
  std::unique_ptr<state> state_;
};

/// All ranks of a program and the handles of those that this process runs: torch.distributed's default process group,
/// MPI_COMM_WORLD. Without a launcher this process runs all ranks, each in a thread of its own; under caf-run --ranks,
/// mpirun, srun or torchrun it runs the one that the environment names. Not thread-safe; its rank handles are one
/// thread each.
class process_group {
public:
  /// Waits until all ranks have joined, for ranks.join-timeout at most. `ranks_alone`: ranks without a launcher.
  /// Errors: invalid_argument for a contradictory environment; timed_out, with the ranks that are missing.
  static expected<process_group> join(const cluster& home, uint32_t ranks_alone);
  process_group(process_group&&) noexcept;
  process_group& operator=(process_group&&) noexcept;
  /// Without `finalize`, this process's ranks leave as if they had died.
  ~process_group();

  uint32_t size() const;                   ///< Ranks of the world.
  std::vector<rank_communicator>& ranks(); ///< Those of this process, in rank order.
  bool runs(uint32_t rank) const;          ///< Whether this process runs the rank.
  /// Runs `body` for each rank of this process in a thread of its own. Returns the first error.
  expected<void> run(const std::function<expected<void>(rank_communicator&)>& body);
  /// Returns when all ranks have called it or are lost (MPI_Finalize). Errors: timed_out, with the ranks that still
  /// run.
  expected<void> finalize();

  struct state; ///< Internal.

private:
  explicit process_group(std::unique_ptr<state> content);
  std::unique_ptr<state> state_;
};

} // namespace RINGMASTER_API
