// The header of an imaginary library, with what a reader of NVIDIA's headers must cope with.
#if defined(PER_THREAD)
#define tinyCopy tinyCopy_ptsz
#endif
/** Not a declaration: extern int TINYAPI tinyGhost(void); */
extern __host__ tinyStatus_t TINYAPI tinyCreate(tinyHandle_t* handle);
extern __host__ __cudart_builtin__ tinyStatus_t TINYAPI tinyCopy(void* to, const void* from,
                                                                 size_t bytes __dv(0),
                                                                 cudaStream_t stream = 0);
extern tinyStatus_t TINYAPI tinyVersion(int* version);  // a comment
const char* TINYAPI tinyName(tinyStatus_t code);
tinyStatus_t TINYAPI tinyUnknown(unsigned int flags[4]);
tinyStatus_t TINYAPI tinySmul_v2(tinyHandle_t handle, tinyOrder_t order, int n, const float* alpha,
                                 const float* x, int incx, float* A, int lda, const float* beta,
                                 float* y);
tinyStatus_t TINYAPI tinySmul_v2_64(tinyHandle_t handle, tinyOrder_t order, int64_t n,
                                    const float* alpha, const float* x, int64_t incx, float* A,
                                    int64_t lda, const float* beta, float* y);
tinyStatus_t TINYAPI tinySsum(tinyHandle_t handle, int n, const float* x, float* result);
tinyStatus_t TINYAPI tinySolve(tinyHandle_t handle, int n, const float* const A[],
                               const float* pivots, const float* AP, float* const B[], int* info,
                               int count);
tinyStatus_t TINYAPI tinyTurn(tinyHandle_t handle, float* a, float* c);
tinyStatus_t TINYAPI tinyDotEx(tinyHandle_t handle, int n, const float* turn, void* result,
                               int type);
tinyStatus_t TINYAPI tinyShade(tinyHandle_t handle, tinyOrder_t order, const void* alpha,
                               const tinyShape_t xShape, const void* x, void* workspace,
                               size_t workspaceBytes, const tinyShape_t yShape, void* y);
tinyStatus_t TINYAPI tinyShadeBytes(tinyHandle_t handle, const tinyShape_t xShape, size_t* bytes);
tinyStatus_t TINYAPI tinySetLimit(unsigned limit);
