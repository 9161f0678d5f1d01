#pragma once

#include <cublasLt.h>

#include "proto/cuda_api/cublaslt_problem.h"
#include "server/executor/library/cublaslt_library.h"

namespace torpor::executor {

// The real descriptors of one matmul, destroyed with the object. Making descriptors takes a dozen
// small allocations in the library, about the cost of a look-up by value.
class CublasLtDescriptors {
 public:
  // `functions` must be complete and outlive the object.
  CublasLtDescriptors(const CublasLtFunctions& functions, const wire::CublasLtProblem& problem);
  ~CublasLtDescriptors();
  CublasLtDescriptors(const CublasLtDescriptors&) = delete;
  CublasLtDescriptors& operator=(const CublasLtDescriptors&) = delete;

  // False if the library refused a descriptor.
  bool ok() const { return ok_; }
  // The descriptors, owned by the object; valid if ok().
  cublasLtMatmulDesc_t matmul() const { return matmul_; }
  cublasLtMatrixLayout_t a() const { return a_; }
  cublasLtMatrixLayout_t b() const { return b_; }
  cublasLtMatrixLayout_t c() const { return c_; }
  cublasLtMatrixLayout_t d() const { return d_; }

 private:
  void MakeMatmul(const LtMatmulDescriptor& value);
  cublasLtMatrixLayout_t MakeLayout(const LtMatrixLayout& value);
  void Check(cublasStatus_t status) { ok_ = ok_ && status == CUBLAS_STATUS_SUCCESS; }

  const CublasLtFunctions& functions_;
  bool ok_ = true;
  cublasLtMatmulDesc_t matmul_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr;
  cublasLtMatrixLayout_t b_ = nullptr;
  cublasLtMatrixLayout_t c_ = nullptr;
  cublasLtMatrixLayout_t d_ = nullptr;
};

// The real descriptor of a preference.
class CublasLtPreference {
 public:
  // `functions` must be complete and outlive the object.
  CublasLtPreference(const CublasLtFunctions& functions, const LtMatmulPreference& value);
  ~CublasLtPreference();
  CublasLtPreference(const CublasLtPreference&) = delete;
  CublasLtPreference& operator=(const CublasLtPreference&) = delete;

  // False if the library refused the preference.
  bool ok() const { return ok_; }
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  const CublasLtFunctions& functions_;
  bool ok_ = false;
  cublasLtMatmulPreference_t preference_ = nullptr;
};

}  // namespace torpor::executor
