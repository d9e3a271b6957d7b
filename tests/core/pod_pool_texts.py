"""One CiliumPodIPPool in each shape that people and clusters write it in."""

TODAY = """
apiVersion: cilium.io/v2alpha1
kind: CiliumPodIPPool
metadata:
  name: green-pool
spec:
  ipv4:
    cidrs:
      - 10.20.0.0/16
      - 10.30.0.0/16
    maskSize: 24
"""
DUAL_STACK = f"""{TODAY}\
  ipv6:
    cidrs:
      - fd00::/104
    maskSize: 120
"""
# CFP-42466
PROPOSED = """
apiVersion: cilium.io/v2
kind: CiliumPodIPPool
metadata:
  name: green-pool
spec:
  ipv4:
    cidrs:
      - cidr: 10.20.0.0/16
        reservedRange: 10.20.0.0-10.20.0.99
      - cidr: 10.30.0.0/16
    maskSize: 24
"""
SHIPPED = f"""{TODAY.replace("v2alpha1", "v2")}\
    pool:
      - cidr: 10.20.0.0/16
        reservedRanges:
          - start: 10.20.0.0
            end: 10.20.0.99
          - {{start: 10.20.9.0, end: 10.20.9.0}}
      - cidr: 10.30.0.0/16
"""
HELM = """
ipam:
  mode: multi-pool
  operator:
    autoCreateCiliumPodIPPools:
      default:
        ipv4:
          cidrs:
            - 10.10.0.0/16
          maskSize: 24
      other:
        ipv4:
          cidrs:
            - 10.20.0.0/16
          maskSize: 24
"""
