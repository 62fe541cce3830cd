#include "runtime/memory/host_copies.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace ringmaster {

void host_copies::remember(device_id device, uint64_t address, byte_block block) {
  const auto bytes = block.size();
  remember_part(device, address, std::move(block), 0, bytes);
}

void host_copies::remember_part(device_id device, uint64_t address, byte_block block, uint64_t offset, uint64_t bytes) {
  if (bytes == 0)
    return;
  const auto end = address + bytes;
  ensure(end > address, "a copied range does not wrap around");
  ensure(offset <= block.size() && bytes <= block.size() - offset, "a copied part lies within its block");
  auto& known = devices_[device];
  const auto last = split(known, end);
  for (auto i = split(known, address); i != last; i = known.erase(i))
    release(i->second, i->first);
  known.emplace_hint(last, address, segment{end, fate::kept, ++last_copy_});
  auto& held = holders_[block.data()];
  ++held.copies;
  held_bytes_ += block.size() > held.bytes ? block.size() - held.bytes : 0;
  held.bytes = std::max<uint64_t>(held.bytes, block.size());
  copies_.emplace_hint(copies_.end(), last_copy_, copy{device, address, std::move(block), offset, bytes, bytes});
  while (held_bytes_ > bytes_max_) {
    const auto before = copies_.size();
    drop_oldest();
    ensure(copies_.size() < before, "dropping a copy drops one");
  }
  ensure(copies_.empty() == holders_.empty(), "blocks are held for copies");
  ensure(held_bytes_ <= bytes_max_, "no more bytes are held than the limit");
}

uint64_t host_copies::copying(device_id device, uint64_t address, uint64_t bytes) {
  will_change(device, address, bytes); // of two copies to one range the last one is unknown
  ensure(bytes == 0
           || std::none_of(under_way_.begin(), under_way_.end(),
                           [&](auto& x) {
                             return x.second.device == device && x.second.address == address && x.second.bytes == bytes;
                           }),
         "of copies to one range the latest alone is awaited");
  under_way_.emplace(++last_under_way_, target{device, address, bytes});
  return last_under_way_;
}

void host_copies::copied(uint64_t number, byte_block block) {
  const auto found = under_way_.find(number);
  if (found == under_way_.end())
    return;
  const auto to = found->second;
  ensure(number <= last_under_way_, "a copy that ends was started");
  under_way_.erase(found);
  if (block.size() == to.bytes)
    remember(to.device, to.address, std::move(block));
}

void host_copies::will_change(device_id device, uint64_t address, uint64_t bytes) {
  overwritten(device, address, bytes);
  std::erase_if(under_way_, [&](const auto& entry) {
    const auto& to = entry.second;
    return to.device == device && to.address < address + bytes && address < to.address + to.bytes;
  });
}

void host_copies::overwritten(device_id device, uint64_t address, uint64_t bytes) {
  const auto found = devices_.find(device);
  if (found == devices_.end() || bytes == 0)
    return;
  auto& known = found->second;
  const auto end = address + bytes;
  ensure(end > address, "an overwritten range does not wrap around");
  const auto last = split(known, end);
  for (auto i = split(known, address); i != last; ++i) {
    ensure(address <= i->first && i->second.end <= end, "only what was overwritten is marked as overwritten");
    release(i->second, i->first);
    i->second = {i->second.end, fate::overwritten, 0};
  }
  merge(known, address, end);
}

caf::expected<std::vector<host_copies::piece>> host_copies::find(device_id device, uint64_t address,
                                                                 uint64_t bytes) const {
  const auto range = [&](uint64_t from, uint64_t to) { return fmt::format("[{:#x}, {:#x})", from, to); };
  if (bytes > std::numeric_limits<uint64_t>::max() - address)
    return invalid(fmt::format("device {:#x}: address {:#x} with {:#x} bytes wraps around", device.value, address,
                               bytes));
  static const segments nothing;
  const auto found = devices_.find(device);
  const auto& known = found == devices_.end() ? nothing : found->second;
  const auto end = address + bytes;
  const auto missing = [&](uint64_t from, uint64_t to, const char* why) {
    return make_error(errc::device_lost, fmt::format("device {:#x}: the host cannot give back {}: its part {} {}",
                                                     device.value, range(address, end), range(from, to), why));
  };
  std::vector<piece> pieces;
  auto next = known.upper_bound(address);
  if (next != known.begin() && std::prev(next)->second.end > address)
    --next;
  for (auto at = address; at != end; ++next) {
    if (next == known.end() || next->first > at)
      return missing(at, next == known.end() ? end : std::min(end, next->first), "was never copied from the host");
    const auto& part = next->second;
    const auto until = std::min(end, part.end);
    if (part.state != fate::kept)
      return missing(at, until, reason(part.state));
    const auto& source = copies_.at(part.copy);
    ensure(source.device == device && source.address <= at && until <= source.address + source.bytes,
           "a piece is of the copy that was made there");
    pieces.push_back({at, source.block, source.offset + at - source.address, until - at});
    at = until;
  }
  return pieces;
}

void host_copies::forget(device_id device) {
  std::erase_if(under_way_, [&](const auto& entry) { return entry.second.device == device; });
  const auto found = devices_.find(device);
  if (found == devices_.end())
    return;
  for (const auto& [start, part] : found->second)
    release(part, start);
  devices_.erase(found);
  ensure(copies_.empty() == (held_bytes_ == 0), "without copies no block is held");
}

/// Makes `address` a boundary: returns the first segment that starts there or later.
host_copies::segments::iterator host_copies::split(segments& known, uint64_t address) {
  const auto next = known.lower_bound(address);
  if (next == known.begin())
    return next;
  auto& before = std::prev(next)->second;
  if (before.end <= address)
    return next;
  ensure(std::prev(next)->first < address, "a segment is split within");
  const auto after = known.emplace_hint(next, address, before);
  before.end = address;
  return after;
}

/// Joins neighbours in and around [begin, end) that met the same fate, so that the record of losses stays short.
void host_copies::merge(segments& known, uint64_t begin, uint64_t end) {
  auto i = known.lower_bound(begin);
  if (i != known.begin())
    --i;
  while (i != known.end() && i->first <= end) {
    const auto next = std::next(i);
    if (next != known.end() && next->first == i->second.end && i->second.state != fate::kept
        && next->second.state == i->second.state) {
      i->second.end = next->second.end;
      known.erase(next);
    } else {
      i = next;
    }
  }
}

const char* host_copies::reason(fate state) {
  switch (state) {
    case fate::overwritten: return "was overwritten on the device since";
    case fate::dropped: return "was dropped, since the host's copies went over their limit";
    case fate::kept: break;
  }
  return "is kept";
}

/// One segment of a copy is no longer kept; the last one releases the block.
void host_copies::release(const segment& part, uint64_t start) {
  if (part.state != fate::kept)
    return;
  const auto source = copies_.find(part.copy);
  ensure(source != copies_.end(), "a kept segment has its copy");
  ensure(start < part.end && part.end - start <= source->second.kept_bytes, "no more is released than was kept");
  source->second.kept_bytes -= part.end - start;
  if (source->second.kept_bytes != 0)
    return;
  const auto holder = holders_.find(source->second.block.data());
  ensure(holder != holders_.end() && holder->second.copies > 0, "a copy's block is held");
  if (--holder->second.copies == 0) {
    ensure(held_bytes_ >= holder->second.bytes, "no more is released than was held");
    held_bytes_ -= holder->second.bytes;
    holders_.erase(holder);
  }
  copies_.erase(source);
}

void host_copies::drop_oldest() {
  ensure(!copies_.empty(), "the oldest of some copies is dropped");
  const auto number = copies_.begin()->first;
  const auto& oldest = copies_.begin()->second;
  const auto begin = oldest.address;
  const auto end = begin + oldest.bytes;
  auto& known = devices_.at(oldest.device);
  // The last release below ends `oldest`.
  for (auto i = known.lower_bound(begin); i != known.end() && i->first < end; ++i)
    if (i->second.copy == number) {
      release(i->second, i->first);
      i->second = {i->second.end, fate::dropped, 0};
    }
  merge(known, begin, end);
}

} // namespace ringmaster
