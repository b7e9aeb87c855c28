/* SPDX-License-Identifier: Apache-2.0
 * Serves a session over a line: the host finds functions by name, sets inputs, runs and reads outputs of the models in
 * kTvmAotModels. crt_config.h says how large a packet may be and how much memory tensors of the host may take. */
#ifndef TVM_RUNTIME_CRT_MICROTVM_RPC_SERVER_H_
#define TVM_RUNTIME_CRT_MICROTVM_RPC_SERVER_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/crt/error_codes.h>
#include <tvm/runtime/crt/rpc_common.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void* microtvm_rpc_server_t;

/* There is one. */
microtvm_rpc_server_t MicroTVMRpcServerInit(microtvm_rpc_channel_write_t write, void* context);
/* Takes bytes that came; *data and *num_bytes say afterwards what is left. An error is of the line: the packet was
 * dropped, and the server goes on. */
tvm_crt_error_t MicroTVMRpcServerLoop(microtvm_rpc_server_t server, const uint8_t** data, size_t* num_bytes);
/* Whether the host ended the session since the last one began. */
int MicroTVMRpcServerHasEnded(microtvm_rpc_server_t server);

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_CRT_MICROTVM_RPC_SERVER_H_ */
