#pragma once

/// Declares `name` as the result of an expression, a caf::expected; if it is an error, the function returns it.
#define TRY(name, ...)                                                                                                 \
  auto name = __VA_ARGS__;                                                                                             \
  if (!name)                                                                                                           \
  return std::move(name.error())

/// Returns the error of an expression, a caf::error, if it is one.
#define RETURN_ERROR(...)                                                                                              \
  do                                                                                                                   \
    if (auto error_to_return = __VA_ARGS__)                                                                            \
      return error_to_return;                                                                                          \
  while (false)
