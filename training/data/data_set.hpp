#pragma once

#include <caf/error.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ringmaster::training {

/// Of an image; of a piece of text 1 x 1 x its length.
struct sample_shape {
  uint32_t channels = 1, rows = 1, columns = 1;

  uint64_t elements() const { return uint64_t{channels} * rows * columns; }
  std::string text() const; ///< "1x28x28"
  friend bool operator==(const sample_shape&, const sample_shape&) = default;
};

/// Samples and their labels, numbered from 0. Never changes, and any number of threads may read it at once.
class data_set {
public:
  virtual ~data_set() = default;

  /// What it is, for people: "CIFAR-10".
  virtual std::string name() const = 0;
  virtual uint32_t count() const = 0;
  virtual sample_shape shape() const = 0;
  /// Labels are 0 to this - 1.
  virtual uint32_t label_count() const = 0;
  /// How many labels a sample has.
  virtual uint32_t labels_each() const { return 1; }
  /// Of all that the samples follow from, so that data which differ anywhere have another: of files every byte, of what
  /// is drawn its parameters. Ranks compare it before they train, and a checkpoint has it. A set of files computes it
  /// once; this one, of any other set, is of up to 16 MiB of samples, spread over all.
  virtual uint64_t digest() const;

  /// Writes these samples one behind the other: `shape().elements()` floats of each to `inputs`, channel by channel and
  /// row by row, and `labels_each()` numbers to `labels`; either may be empty, and is not wanted. Errors: size_mismatch
  /// where a span has another size, out_of_range for a sample that there is not; then nothing is written. io_error,
  /// with the sample, where the set throws, and where its files are damaged.
  caf::error fill(std::span<const uint32_t> samples, std::span<float> inputs, std::span<uint32_t> labels) const;

private:
  /// The same of one that is there, into spans that are empty or fit.
  virtual void fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const = 0;
  /// Why what `fill_one` has written means nothing, though it did not throw.
  virtual caf::error damage() const { return caf::none; }
};

/// What a model learns from, and what it is tried on, which have no sample in common.
struct opened_data {
  std::shared_ptr<const data_set> training, held_out;
  std::vector<std::string> remarks{}; ///< What was not taken, and why, a sentence each.
  std::string found_in{};             ///< A folder within the one that was named has the files; empty: that one has.
};

} // namespace ringmaster::training
