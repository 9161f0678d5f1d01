#pragma once

// Returns from the enclosing function what `expression` is unless that is zero, which means success
// in every status of CUDA (cudaError_t, CUresult, cublasStatus_t, cudnnStatus_t).
#define TORPOR_TRY(expression)                                                             \
  if (const auto torpor_status = (expression); torpor_status != decltype(torpor_status){}) \
  return torpor_status
