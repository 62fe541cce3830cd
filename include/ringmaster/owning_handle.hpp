#pragma once

#include <ringmaster/version.hpp>

#include <memory>
#include <utility>

namespace RINGMASTER_API {

struct client_state;

/// Internal: a resource of a client that one handle at a time owns, and that the last one gives back. A Resource is a
/// struct with the member function `give_back(client_state&)`.
template <class Resource>
class owning_handle {
public:
  owning_handle() = default; ///< Owns nothing.
  /// Owns `what`, which the client has made.
  owning_handle(std::shared_ptr<client_state> client, Resource what)
    : client_(std::move(client)), what_(std::move(what)) {}
  owning_handle(owning_handle&& other) noexcept = default;
  /// Both swap what they own.
  owning_handle& operator=(owning_handle&& other) noexcept {
    std::swap(client_, other.client_);
    std::swap(what_, other.what_);
    return *this;
  }
  ~owning_handle() {
    if (client_)
      what_.give_back(*client_);
  }

  const Resource* operator->() const noexcept { return &what_; }                   ///< What is owned.
  const std::shared_ptr<client_state>& client() const noexcept { return client_; } ///< Null: nothing is owned.

private:
  std::shared_ptr<client_state> client_;
  Resource what_{};
};

} // namespace RINGMASTER_API
