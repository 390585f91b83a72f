// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title VaultProxy
/// @notice Forwards to the current version of the vault; logic and admin lie in slots far from the vault's.
contract VaultProxy {
    bytes32 private constant LOGIC_SLOT = bytes32(uint256(keccak256("vault.proxy.logic")) - 1);
    address private immutable admin;

    event Upgraded(address indexed logic);

    constructor(address logic, address owner) {
        admin = msg.sender;
        _setLogic(logic);
        (bool ok, ) = logic.delegatecall(abi.encodeWithSignature("initialize(address)", owner));
        require(ok, "not initialized");
    }

    receive() external payable {}

    function upgradeTo(address logic) external {
        require(msg.sender == admin, "not admin");
        _setLogic(logic);
    }

    fallback() external payable {
        bytes32 slot = LOGIC_SLOT;
        assembly {
            let logic := sload(slot)
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), logic, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            switch ok
            case 0 { revert(0, returndatasize()) }
            default { return(0, returndatasize()) }
        }
    }

    function _setLogic(address logic) private {
        require(logic.code.length > 0, "no code");
        bytes32 slot = LOGIC_SLOT;
        assembly {
            sstore(slot, logic)
        }
        emit Upgraded(logic);
    }
}
