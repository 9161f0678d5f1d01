#pragma once

#include <cublas_api.h>

// BLAS's rotations of single numbers in host memory, computed without a GPU. All functions return
// CUBLAS_STATUS_INVALID_VALUE for null.
namespace torpor::shim {

// Makes the rotation (c, s) that turns (a, b) to (r, 0). `a` becomes r. A real `b` becomes the
// number that encodes c and s.
cublasStatus_t Rotg(float* a, float* b, float* c, float* s);
cublasStatus_t Rotg(double* a, double* b, double* c, double* s);
cublasStatus_t Rotg(cuComplex* a, const cuComplex* b, float* c, cuComplex* s);
cublasStatus_t Rotg(cuDoubleComplex* a, const cuDoubleComplex* b, double* c, cuDoubleComplex* s);

// Makes the modified rotation that turns (√d1 x1, √d2 y1) to (√d1 x1, 0). `param` receives the flag
// and the matrix by columns, without the elements that the flag implies.
cublasStatus_t Rotmg(float* d1, float* d2, float* x1, const float* y1, float* param);
cublasStatus_t Rotmg(double* d1, double* d2, double* x1, const double* y1, double* param);

}  // namespace torpor::shim
