/*
 * The function that libfabric calls after it has loaded this library. Owns the provider's
 * description.
 */
#include <rdma/fi_ext.h>
#include <rdma/providers/fi_prov.h>
#include "providers/libfabric/objects/domain.h"
#include "providers/libfabric/objects/info.h"

static void clean_up(void)
{
}

struct fi_provider info_provider = {
    .version = FI_VERSION(1, 0),
    .fi_version = FI_VERSION(1, 17),
    .name = INFO_NAME,
    .getinfo = info_get,
    .fabric = fabric_open,
    .cleanup = clean_up,
};

struct fi_provider *fi_prov_ini(void);

FI_EXT_INI
{
    fi_param_define(&info_provider, "job", FI_PARAM_STRING,
                    "Name of the job whose processes reach one another (PWC_JOB, PMIX_NAMESPACE, "
                    "the Slurm step, or \"libfabric\")");
    return &info_provider;
}
