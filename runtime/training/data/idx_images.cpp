#include "runtime/training/data/idx_images.hpp"

#include "messages/errc.hpp"
#include "runtime/training/data/stored_images.hpp"

#include <fmt/format.h>

#include <array>

namespace ringmaster::training {

namespace {

namespace fs = std::filesystem;

struct idx_half {
  const char *images, *labels;
};
constexpr idx_half idx_training{"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
  idx_held_out{"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

bool is_there(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored) || fs::exists(file.string() + ".gz", ignored);
}

/// By its name, or with a dot before "idx", as the files are often shared.
fs::path file_in(const fs::path& folder, std::string name) {
  const auto mnists = folder / name;
  name[name.find("-idx")] = '.';
  return !is_there(mnists) && is_there(folder / name) ? folder / name : mnists;
}

caf::error wrong_at(const fs::path& file, size_t offset, const std::string& sentence) {
  return malformed(fmt::format("{}, byte {}: {}", file.string(), offset, sentence));
}

uint32_t big_endian(std::span<const std::byte> bytes, size_t offset) {
  uint32_t result = 0;
  for (size_t i = 0; i < 4; ++i)
    result = result << 8 | std::to_integer<uint32_t>(bytes[offset + i]);
  return result;
}

/// A file of one magic number and `Sides` sizes, the count first, before the bytes.
template <size_t Sides>
struct idx_file {
  fs::path file;
  file_bytes content;
  std::array<uint32_t, Sides> sides{};

  static constexpr size_t header = 4 + 4 * Sides;
  std::span<const std::byte> bytes() const { return content.bytes(); }

  static caf::expected<idx_file> read(const fs::path& file) {
    std::error_code ignored;
    if (auto packed = file.string() + ".gz"; !fs::exists(file, ignored) && fs::exists(packed, ignored))
      return make_error(errc::io_error, fmt::format("{0}: it is packed; `gunzip {0}` unpacks it", packed));
    auto content = file_bytes::of(file);
    if (!content)
      return std::move(content.error());
    idx_file result{file, std::move(*content)};
    if (auto problem = result.read_header())
      return problem;
    return result;
  }

private:
  caf::error read_header() {
    constexpr uint32_t magic = 0x800 + Sides; // unsigned bytes, in so many dimensions
    if (bytes().size() < header)
      return wrong_at(file, bytes().size(), fmt::format("the file ends within its header, which has {} bytes", header));
    if (auto found = big_endian(bytes(), 0); found >> 16 == 0x1f8b)
      return wrong_at(file, 0, "it is packed by gzip: `gunzip` makes the file that can be read");
    else if (found != magic)
      return wrong_at(file, 0, fmt::format("the magic number must be 0x{:08x}, and is 0x{:08x}", magic, found));
    uint64_t each = 1;
    for (size_t i = 0; i < Sides; ++i) {
      constexpr uint32_t side_max = 1 << 16;
      sides[i] = big_endian(bytes(), 4 + 4 * i);
      if (sides[i] == 0 || (i > 0 && sides[i] > side_max))
        return wrong_at(file, 4 + 4 * i,
                        fmt::format("the {} must be {}, and is {}", i == 0 ? "count" : "image's side",
                                    i == 0 ? "1 or more" : fmt::format("1 to {}", side_max), sides[i]));
      each *= i == 0 ? 1 : sides[i];
    }
    const auto right = (bytes().size() - header) / each == sides[0] && (bytes().size() - header) % each == 0;
    if (!right)
      return wrong_at(file, bytes().size(),
                      fmt::format("the file ends here, and by its header must do so at byte {}: {} of header, {} x {} "
                                  "behind it",
                                  header + sides[0] * each, header, sides[0], each));
    return caf::none;
  }
};

caf::expected<std::shared_ptr<const data_set>> read_half(const fs::path& folder, const idx_half& which) {
  auto images = idx_file<3>::read(file_in(folder, which.images));
  if (!images)
    return std::move(images.error());
  auto labels = idx_file<1>::read(file_in(folder, which.labels));
  if (!labels)
    return std::move(labels.error());
  const auto [count, rows, columns] = images->sides;
  if (labels->sides[0] != count)
    return wrong_at(labels->file, 4,
                    fmt::format("there must be {} labels, as many as images in {}, and there are {}", count,
                                which.images, labels->sides[0]));
  std::vector<stored_image> found(count);
  for (size_t i = 0; i < count; ++i) {
    auto label = label_at(labels->file, labels->bytes(), labels->header + i, i);
    if (!label)
      return std::move(label.error());
    found[i] = {images->bytes().data() + images->header + i * rows * columns, *label};
  }
  std::vector<file_bytes> files;
  files.push_back(std::move(images->content));
  return std::make_shared<const stored_images>("IDX images", sample_shape{1, rows, columns}, std::move(files),
                                               std::move(found));
}

} // namespace

bool has_idx_images(const fs::path& folder) {
  for (auto* name : {idx_training.images, idx_training.labels, idx_held_out.images, idx_held_out.labels})
    if (is_there(file_in(folder, name)))
      return true;
  return false;
}

caf::expected<opened_data> open_idx_images(const fs::path& folder) {
  auto training = read_half(folder, idx_training);
  if (!training)
    return std::move(training.error());
  auto held_out = read_half(folder, idx_held_out);
  if (!held_out)
    return std::move(held_out.error());
  if ((*held_out)->shape() != (*training)->shape())
    return wrong_at(folder / idx_held_out.images, 8,
                    fmt::format("images must be {}, as in {}, and are {}", (*training)->shape().text(),
                                idx_training.images, (*held_out)->shape().text()));
  return opened_data{std::move(*training), std::move(*held_out)};
}

} // namespace ringmaster::training
