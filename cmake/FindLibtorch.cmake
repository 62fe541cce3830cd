# Finds libtorch and OpenBLAS, and defines Libtorch::libtorch. Debian: libtorch-dev and libopenblas0-pthread. A program
# that links OpenBLAS itself computes with it whatever else is installed as BLAS; the reference BLAS is many times slower.
find_path(LIBTORCH_INCLUDE_DIR torch/csrc/api/include/torch/torch.h)
find_library(LIBTORCH_LIBRARY torch)
find_library(LIBTORCH_CPU_LIBRARY torch_cpu)
find_library(LIBTORCH_C10_LIBRARY c10)
find_library(LIBTORCH_OPENBLAS_LIBRARY NAMES openblas libopenblas.so.0)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libtorch
  REQUIRED_VARS LIBTORCH_LIBRARY LIBTORCH_CPU_LIBRARY LIBTORCH_C10_LIBRARY LIBTORCH_OPENBLAS_LIBRARY LIBTORCH_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "apt-get install libtorch-dev libopenblas0-pthread")

if(Libtorch_FOUND AND NOT TARGET Libtorch::libtorch)
  add_library(Libtorch::libtorch INTERFACE IMPORTED)
  set_target_properties(Libtorch::libtorch PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${LIBTORCH_INCLUDE_DIR};${LIBTORCH_INCLUDE_DIR}/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES
      "${LIBTORCH_OPENBLAS_LIBRARY};${LIBTORCH_LIBRARY};${LIBTORCH_CPU_LIBRARY};${LIBTORCH_C10_LIBRARY}")
endif()
