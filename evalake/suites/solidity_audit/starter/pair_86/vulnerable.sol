// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IWithdrawHook {
    function onWithdraw(address account, uint256 amount) external;
}

/// @title YieldKeeper
/// @notice Holds the ether of one vault and pays out on its order.
contract YieldKeeper {
    address public immutable vault;

    constructor() {
        vault = msg.sender;
    }

    receive() external payable {}

    function payOut(address payable to, uint256 amount) external {
        require(msg.sender == vault, "not vault");
        (bool sent, ) = to.call{value: amount}("");
        require(sent, "transfer failed");
    }
}

/// @title HookedVault
/// @notice Ether vault; depositors can have a contract of theirs told of their withdrawals.
contract HookedVault {
    struct Hook {
        address target;
        bytes data;
    }

    YieldKeeper public immutable keeper;
    mapping(address => uint256) public balanceOf;
    mapping(address => Hook) private hooks;

    event Deposited(address indexed account, uint256 amount);
    event Withdrawn(address indexed account, uint256 amount);
    event HookSet(address indexed account, address target);

    constructor() {
        keeper = new YieldKeeper();
    }

    function deposit() external payable {
        balanceOf[msg.sender] += msg.value;
        emit Deposited(msg.sender, msg.value);
        (bool sent, ) = address(keeper).call{value: msg.value}("");
        require(sent, "transfer failed");
    }

    /// @notice Sets what is told of the caller's withdrawals; zero for nothing.
    function setHook(address target, bytes calldata data) external {
        require(target == address(0) || target.code.length > 0, "no code");
        hooks[msg.sender] = Hook(target, data);
        emit HookSet(msg.sender, target);
    }

    function withdraw(uint256 amount) external {
        balanceOf[msg.sender] -= amount;
        emit Withdrawn(msg.sender, amount);
        keeper.payOut(payable(msg.sender), amount);
        notifyHook(msg.sender, amount);
    }

    function notifyHook(address account, uint256 amount) private {
        Hook storage hook = hooks[account];
        if (hook.target != address(0)) {
            (bool ok, ) = hook.target.call(hook.data.length > 0 ? hook.data : abi.encode(amount));
            require(ok, "hook failed");
        }
    }
}
