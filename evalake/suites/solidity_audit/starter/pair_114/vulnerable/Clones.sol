// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title Clones
/// @notice Deploys minimal clones of a contract.
library Clones {
    /// @notice Deploys a clone at an address that follows from the salt.
    function clone(address logic, bytes32 salt) internal returns (address instance) {
        bytes memory code = abi.encodePacked(
            hex"3d602d80600a3d3981f3363d3d373d3d3d363d73",
            logic,
            hex"5af43d82803e903d91602b57fd5bf3"
        );
        assembly {
            instance := create2(0, add(code, 32), mload(code), salt)
        }
        require(instance != address(0), "not created");
    }
}
