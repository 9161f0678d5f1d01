#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns early with the error of `expression`, an absl::Status.
#define TORPOR_RETURN_IF_ERROR(expression)                                                    \
  do {                                                                                        \
    if (absl::Status torpor_status = (expression); !torpor_status.ok()) return torpor_status; \
  } while (false)

#define TORPOR_STATUS_CONCAT_INNER(a, b) a##b
#define TORPOR_STATUS_CONCAT(a, b) TORPOR_STATUS_CONCAT_INNER(a, b)

// A declaration cannot stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
// Declares or assigns `lhs` from `expression`, an absl::StatusOr, or returns its error.
#define TORPOR_ASSIGN_OR_RETURN(lhs, expression) \
  TORPOR_ASSIGN_OR_RETURN_IMPL(TORPOR_STATUS_CONCAT(torpor_status_or_, __LINE__), lhs, expression)
#define TORPOR_ASSIGN_OR_RETURN_IMPL(result, lhs, expression) \
  auto result = (expression);                                 \
  if (!result.ok()) return std::move(result).status();        \
  lhs = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)
